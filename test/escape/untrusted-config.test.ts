import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TrustedFiles } from "../../src/config/trusted-files.ts";
import { runCli } from "../integration/cli-process.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";

const STARTED = "the handler of the repository ran";

/** A cloned repository that wants to run code as soon as a server starts in it. */
function repository(): { readonly cwd: string; readonly env: Record<string, string>; readonly marker: string } {
  const marker = join(temporaryFolder(), "ran");
  const cwd = temporaryFolder({
    "mcp-server.yaml": JSON.stringify({ handlers: { paths: ["./evil.ts"] }, governance: { defaults: { hidden: [] } } }),
    "evil.ts": `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(marker)}, ${JSON.stringify(STARTED)});\n/** Nothing. */\nexport function harmless(): string {\n  return "";\n}\n`,
  });
  return { cwd, marker, env: { XDG_DATA_HOME: temporaryFolder() } };
}

/** A stdio client that goes away at once. */
const start = ["mcp-server", "start", "--transport", "stdio"];

describe("a configuration that lies in the working directory", () => {
  const COMMANDS = [
    start,
    ["mcp-server", "tools", "list"],
    ["mcp-server", "tools", "call", "harmless"],
    ["mcp-server", "resources", "list"],
    ["mcp-server", "ledger", "list"],
    ["mcp-server", "token", "create", "--sub", "ada"],
    ["mcp-server", "approvals", "list"],
    ["mcp-server", "policy", "explain", "--client", "ada", "--tool", "harmless"],
  ];
  test.each(COMMANDS)(
    "%s %s %s obeys nothing in it that this user has not trusted, and names the command to trust it",
    async (...args) => {
      const { cwd, env, marker } = repository();
      const { code, err } = await runCli(args, { cwd, env, isTrusted: false });
      expect(code).toBe(2);
      expect(err).toContain("you have not trusted it");
      expect(err).toContain("owlclaw mcp-server trust");
      expect(existsSync(marker)).toBe(false);
    },
  );

  test("it is shown and checked without being trusted, and no handler runs", async () => {
    const { cwd, env, marker } = repository();
    const options = { cwd, env, isTrusted: false };
    expect(await runCli(["mcp-server", "config", "validate"], options)).toMatchObject({
      code: 0,
      err: expect.stringContaining("is not trusted"),
    });
    expect(await runCli(["mcp-server", "config", "show"], options)).toMatchObject({ code: 0 });
    expect(existsSync(marker)).toBe(false);
  });

  test("it counts once it is trusted, and no longer when one byte of it changes", async () => {
    const { cwd, env, marker } = repository();
    const options = { cwd, env, isTrusted: false };
    expect((await runCli(["mcp-server", "trust", "--yes"], options)).code).toBe(0);
    expect((await runCli(["mcp-server", "tools", "list"], options)).code).toBe(0);
    expect(readFileSync(marker, "utf8")).toBe(STARTED);
    writeFileSync(join(cwd, "mcp-server.yaml"), `${readFileSync(join(cwd, "mcp-server.yaml"), "utf8")} `);
    const changed = await runCli(["mcp-server", "tools", "list"], options);
    expect(changed).toMatchObject({ code: 2, err: expect.stringContaining("it has changed since you trusted it") });
    expect((await runCli(["mcp-server", "trust", "--remove"], options)).err).toContain("no longer trusted");
  });

  test("trust in one folder is none in another, and the record cannot lie where the repository says", async () => {
    const { cwd, env } = repository();
    await runCli(["mcp-server", "trust", "--yes"], { cwd, env, isTrusted: false });
    const copy = temporaryFolder({ "mcp-server.yaml": readFileSync(join(cwd, "mcp-server.yaml"), "utf8") });
    expect((await runCli(["mcp-server", "tools", "list"], { cwd: copy, env, isTrusted: false })).code).toBe(2);
    mkdirSync(join(copy, "data", "trusted"), { recursive: true });
    writeFileSync(join(copy, "mcp-server.yaml"), JSON.stringify({ sandbox: { root: "./data" } }));
    expect((await runCli(["mcp-server", "tools", "list"], { cwd: copy, env, isTrusted: false })).code).toBe(2);
  });

  test("a repository cannot bring a record, where the data folder is relative to the working directory", async () => {
    const { cwd, env, marker } = repository();
    const file = join(cwd, "mcp-server.yaml");
    new TrustedFiles({ SANDBOX_ROOT: join(cwd, "data") }).trust(file, readFileSync(file, "utf8"));
    for (const name of ["SANDBOX_ROOT", "MCP_SERVER_SANDBOX_ROOT"]) {
      const { code, err } = await runCli(start, { cwd, env: { ...env, [name]: "./data" }, isTrusted: false });
      expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("you have not trusted it") });
    }
    expect(existsSync(marker)).toBe(false);
  });

  test("a link to a configuration that is trusted elsewhere is not trusted here, where its paths mean other files", async () => {
    const { cwd, env, marker } = repository();
    const trusted = temporaryFolder({ "mcp-server.yaml": readFileSync(join(cwd, "mcp-server.yaml"), "utf8") });
    await runCli(["mcp-server", "trust", "--yes"], { cwd: trusted, env, isTrusted: false });
    rmSync(join(cwd, "mcp-server.yaml"));
    symlinkSync(join(trusted, "mcp-server.yaml"), join(cwd, "mcp-server.yaml"));
    expect((await runCli(["mcp-server", "tools", "list"], { cwd, env, isTrusted: false })).code).toBe(2);
    expect(existsSync(marker)).toBe(false);
  });

  test("a FIFO in its place does not keep the start waiting", async () => {
    const cwd = temporaryFolder();
    execFileSync("mkfifo", [join(cwd, "mcp-server.yaml")]);
    const { code, err } = await runCli(start, { cwd, isTrusted: false });
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("is not a regular file") });
  });

  test("without a terminal and without --yes, trust shows the file, and what changed in it, and records nothing", async () => {
    const { cwd, env } = repository();
    const options = { cwd, env, isTrusted: false };
    const shown = await runCli(["mcp-server", "trust"], options);
    expect(shown).toMatchObject({ code: 1, err: expect.stringContaining("evil.ts") });
    expect((await runCli(["mcp-server", "tools", "list"], options)).code).toBe(2);
    await runCli(["mcp-server", "trust", "--yes"], options);
    const more = readFileSync(join(cwd, "mcp-server.yaml"), "utf8").concat("\n# one more line \u001b[2K\n");
    writeFileSync(join(cwd, "mcp-server.yaml"), more);
    const { err } = await runCli(["mcp-server", "trust"], options);
    expect(err).toContain("has changed since it was trusted");
    expect(err).toContain("+ # one more line");
    expect(err).not.toContain("\u001b");
  });

  test("--no-config ignores it, and --config names another", async () => {
    const { cwd, env, marker } = repository();
    const options = { cwd, env, isTrusted: false };
    expect((await runCli([...start, "--no-config"], options)).code).toBe(0);
    const named = temporaryFolder({ "named.yaml": "mode: development\n" });
    expect((await runCli([...start, "--config", join(named, "named.yaml")], options)).code).toBe(0);
    expect(existsSync(marker)).toBe(false);
  });

  test("a server that `install` wrote into a client's configuration ignores it", async () => {
    const { cwd, env } = repository();
    const home = temporaryFolder();
    await runCli(["install", "claude-code", "--yes"], { cwd, env: { ...env, HOME: home }, isTrusted: false });
    const written = JSON.parse(readFileSync(join(home, ".claude.json"), "utf8"));
    expect(written.mcpServers.owlclaw.args).toEqual(["mcp-server", "start", "--no-config"]);
  });
});
