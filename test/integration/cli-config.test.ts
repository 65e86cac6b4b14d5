import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jwtVerify } from "jose";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { configJsonSchema } from "../../src/config/render-config.ts";
import { DEFAULT_CONFIG } from "../../src/config/schema.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { runCli, spawnCli } from "./cli-process.ts";

const SECRET = "a-secret-of-at-least-thirty-two-bytes";

describe("config validate", () => {
  test("[004-R10.4] [004-R12.5] says which file is valid and exits with 0", async () => {
    const cwd = temporaryFolder({ "mcp-server.yaml": "transport: http\n" });
    expect(await runCli(["mcp-server", "config", "validate"], { cwd })).toEqual({
      code: 0,
      out: `${join(cwd, "mcp-server.yaml")} is valid.\n`,
      err: "",
    });
  });

  test("[004-R10.4] [004-R12.5] lists every problem and exits with 2", async () => {
    const cwd = temporaryFolder({
      "mcp-server.yaml": "http:\n  port: 70000\n  tls: { certFile: no.crt, keyFile: no.key }\nlogin: x\n",
    });
    const { code, out, err } = await runCli(["mcp-server", "config", "validate"], {
      cwd,
      env: { MCP_SERVER_MODE: "prod" },
    });
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("The configuration has 5 problems:");
    for (const path of ["http.port = 70000", "http.tls.certFile", "http.tls.keyFile", "login", 'mode = "prod"'])
      expect(err).toContain(path);
    expect(err.match(/reason: /g)).toHaveLength(5);
    expect(err.match(/fix: /g)).toHaveLength(5);
  });

  test("lists what keeps handlers from being served, and exits with 1", async () => {
    const cwd = temporaryFolder({
      "broken.ts": "export const = ;\n",
      "half.ts":
        "/** Fine. */\nexport function fine(): void {}\n/** Bad. */\nexport function bad(m: Map<string, string>): void {}\n",
      "taken.ts": "/** Fine, too. */\nexport function fine(): void {}\n",
      "snake.py": "def broken(:\n",
    });
    const root = join(cwd, "data");
    const write = (paths: readonly string[]): void =>
      writeFileSync(join(cwd, "mcp-server.yaml"), JSON.stringify({ handlers: { paths }, sandbox: { root } }));
    write([cwd]);
    const { code, out, err } = await runCli(["mcp-server", "config", "validate"], { cwd });
    expect({ code, out }).toEqual({ code: 1, out: `${join(cwd, "mcp-server.yaml")} is valid.\n` });
    expect(err).toContain(join(cwd, "broken.ts"));
    expect(err).toContain(
      `${join(cwd, "half.ts")}:4:21: error: bad: m has the type Map<string, string>, which JSON cannot express`,
    );
    expect(err).toContain(`${join(cwd, "snake.py")}:1`);
    expect(err).toContain(
      `${join(cwd, "taken.ts")}: error: "fine" is not served: ${join(cwd, "half.ts")} has a tool "fine" already`,
    );
    write([join(cwd, "taken.ts")]);
    expect(await runCli(["mcp-server", "config", "validate"], { cwd })).toMatchObject({ code: 0, err: "" });
  });

  test("[004-R12.4] --config names the file, and a missing one is an error", async () => {
    const cwd = temporaryFolder({ "other.yaml": "mode: development" });
    expect(await runCli(["mcp-server", "config", "validate", "--config", "other.yaml"], { cwd })).toMatchObject({
      code: 0,
      out: expect.stringContaining("other.yaml is valid"),
    });
    expect(await runCli(["mcp-server", "config", "validate", "--config", "none.yaml"], { cwd })).toMatchObject({
      code: 2,
      err: expect.stringContaining("none.yaml"),
    });
  });
});

describe("config show", () => {
  test("[004-R10.1] [004-R10.2] [004-R10.3] shows each value with the layer that it comes from", async () => {
    const cwd = temporaryFolder({ "mcp-server.yaml": "http:\n  host: 127.0.0.2\n  port: 1\n  maxSessions: 2\n" });
    const { code, out } = await runCli(["mcp-server", "config", "show", "--json", "--port", "3"], {
      cwd,
      env: { MCP_SERVER_PORT: "2", MCP_SERVER_HOST: "127.0.0.3" },
    });
    expect(code).toBe(0);
    expect(JSON.parse(out).file).toBe(join(cwd, "mcp-server.yaml"));
    expect(JSON.parse(out).values).toEqual(
      expect.arrayContaining([
        { path: "http.port", value: 3, layer: "flag", source: "--port" },
        { path: "http.host", value: "127.0.0.3", layer: "env", source: "MCP_SERVER_HOST" },
        { path: "http.maxSessions", value: 2, layer: "file", source: "mcp-server.yaml:4:16" },
        { path: "http.maxBodyBytes", value: 4194304, layer: "default", source: "default" },
      ]),
    );
  });

  test("[003-FR-012] masks secrets, in the table and in JSON", async () => {
    const env = { MCP_AUTH_ENABLED: "true", MCP_AUTH_JWT_SECRET: SECRET };
    for (const flags of [[], ["--json"]]) {
      const { code, out, err } = await runCli(["mcp-server", "config", "show", ...flags], {
        cwd: temporaryFolder(),
        env,
      });
      expect(code).toBe(0);
      expect(out).toContain("********");
      expect(out + err).not.toContain(SECRET);
    }
  });

  test("flags reach every key", async () => {
    const argv = [
      "--set",
      "tools.timeoutSeconds=60",
      "--cors-origin",
      "https://a.example",
      "https://b.example",
      "--allow-unauthenticated",
      "--log-level=debug",
    ];
    const { out } = await runCli(["mcp-server", "config", "show", "--json", ...argv], { cwd: temporaryFolder() });
    const set = JSON.parse(out).values.filter(({ layer }: { layer: string }) => layer === "flag");
    expect(set).toEqual([
      { path: "http.allowUnauthenticated", value: true, layer: "flag", source: "--allow-unauthenticated" },
      { path: "http.cors.enabled", value: true, layer: "flag", source: "--cors-origin" },
      {
        path: "http.cors.origins",
        value: ["https://a.example", "https://b.example"],
        layer: "flag",
        source: "--cors-origin",
      },
      { path: "tools.timeoutSeconds", value: 60, layer: "flag", source: "--set" },
      { path: "logging.level", value: "debug", layer: "flag", source: "--log-level" },
    ]);
  });

  test("a reader that goes away ends the command without a complaint", async () => {
    const child = spawnCli(["mcp-server", "config", "schema"], { cwd: temporaryFolder() });
    child.stdout.destroy();
    let err = "";
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
    const code = await new Promise((resolve) => child.once("exit", resolve));
    expect({ code, err }).toEqual({ code: 0, err: "" });
  });
});

describe("config schema and config init", () => {
  test("schema prints the JSON Schema", async () => {
    const { code, out } = await runCli(["mcp-server", "config", "schema"]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual(configJsonSchema());
  });

  test("init writes every default, for the owner's eyes, and the file is valid", async () => {
    const cwd = temporaryFolder();
    expect(await runCli(["mcp-server", "config", "init"], { cwd })).toMatchObject({ code: 0, out: "" });
    expect(parse(readFileSync(join(cwd, "mcp-server.yaml"), "utf8"))).toEqual(DEFAULT_CONFIG);
    expect(statSync(join(cwd, "mcp-server.yaml")).mode & 0o077).toBe(0);
    expect(await runCli(["mcp-server", "config", "validate"], { cwd })).toMatchObject({ code: 0 });
  });

  test("init keeps a file that is there, unless --force says otherwise", async () => {
    const cwd = temporaryFolder({ "mcp-server.yaml": "mode: development\n" });
    expect(await runCli(["mcp-server", "config", "init"], { cwd })).toMatchObject({
      code: 1,
      err: expect.stringContaining("--force"),
    });
    expect(readFileSync(join(cwd, "mcp-server.yaml"), "utf8")).toBe("mode: development\n");
    expect(await runCli(["mcp-server", "config", "init", "--force"], { cwd })).toMatchObject({ code: 0 });
    expect(readFileSync(join(cwd, "mcp-server.yaml"), "utf8")).toContain("transport:");
  });

  test("init --stdout writes no file", async () => {
    const cwd = temporaryFolder();
    const { code, out } = await runCli(["mcp-server", "config", "init", "--stdout"], { cwd });
    expect(code).toBe(0);
    expect(parse(out)).toEqual(DEFAULT_CONFIG);
    expect(existsSync(join(cwd, "mcp-server.yaml"))).toBe(false);
  });
});

describe("token create", () => {
  test("prints a token that the configured secret verifies", async () => {
    const env = { MCP_AUTH_JWT_SECRET: SECRET, MCP_AUTH_AUDIENCE: "mcp", MCP_AUTH_ISSUER: "https://id.example" };
    const argv = [
      "mcp-server",
      "token",
      "create",
      "--sub",
      "ada",
      "--scope",
      "tools:call,owlclaw:admin",
      "--expires",
      "15m",
    ];
    const { code, out, err } = await runCli(argv, { cwd: temporaryFolder(), env });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const { payload } = await jwtVerify(out.trim(), new TextEncoder().encode(SECRET), {
      audience: "mcp",
      issuer: "https://id.example",
    });
    expect(payload).toMatchObject({ sub: "ada", scope: "tools:call owlclaw:admin" });
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(900);
  });

  test("says what to set when there is no secret", async () => {
    const result = await runCli(["mcp-server", "token", "create", "--sub", "ada"], { cwd: temporaryFolder() });
    expect(result).toMatchObject({ code: 2, out: "", err: expect.stringContaining("MCP_AUTH_JWT_SECRET") });
  });
});

test("[004-R12.8] [004-R12.9] --help and --version of the bin", async () => {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect(await runCli(["--version"])).toEqual({ code: 0, out: `${manifest.version}\n`, err: "" });
  expect(await runCli(["mcp-server", "--help"])).toMatchObject({
    code: 0,
    err: "",
    out: expect.stringContaining("start [options]"),
  });
});

test("an open address without auth is refused before anything listens", async () => {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, "mcp-server.yaml"), "transport: http\n");
  const result = await runCli(["mcp-server", "start"], {
    cwd,
    env: { MCP_SERVER_HOST: "0.0.0.0", MCP_ENABLE_CORS: "true" },
  });
  expect(result).toMatchObject({ code: 2, out: "", err: expect.stringContaining("--allow-unauthenticated") });
});
