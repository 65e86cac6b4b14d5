import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BUNDLES } from "../../scripts/build-guest.mjs";
import { ENTRIES } from "../../scripts/build-server.mjs";

const ROOT = join(import.meta.dirname, "..", "..");
const COPIED = [
  "owlclaw",
  "scripts",
  "contract",
  "guest",
  "web",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "tsconfig.build.json",
];
const MAIN = `#!/usr/bin/env node
process.stdout.write(JSON.stringify(process.argv.slice(2)));
process.stdin.on("data", (chunk) => process.stdout.write(chunk)).on("end", () => { process.exitCode = 7; });
`;

let clone = "";

/** A clone as small as possible: the real launcher and set-up, a stand-in for the CLI. */
beforeEach(async () => {
  clone = await mkdtemp(join(tmpdir(), "owlclaw-clone-"));
  await chmod(clone, 0o755);
  for (const name of COPIED) await cp(join(ROOT, name), join(clone, name), { recursive: true });
  await mkdir(join(clone, "src", "handlers", "python", "owlclaw"), { recursive: true });
  const inGuest = Object.values(BUNDLES).filter((file) => file.startsWith("src/"));
  for (const file of [...ENTRIES.map((entry) => `src/${entry}.ts`), ...inGuest]) {
    await mkdir(dirname(join(clone, file)), { recursive: true });
    await writeFile(join(clone, file), file === "src/main.ts" ? MAIN : "export const none = true;\n");
  }
  await symlink(join(ROOT, "node_modules"), join(clone, "node_modules"));
});

afterEach(async () => {
  await rm(clone, { recursive: true, force: true });
});

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface StartOptions {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly input?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly uid?: number;
}

function start(options: StartOptions = {}): Promise<Run> {
  const { command = join(clone, "owlclaw"), args = [], input = "", cwd = clone, env = {}, uid } = options;
  return new Promise((resolve) => {
    const settings = { cwd, env: { ...process.env, ...env }, ...(uid === undefined ? {} : { uid }) };
    const child = execFile(command, args, settings, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode, stdout, stderr });
    });
    child.stdin?.end(input);
  });
}

const stampTimeMs = async () => (await stat(join(clone, ".cache", "setup.stamp"))).mtimeMs;

describe("./owlclaw", () => {
  it("builds on first use and leaves stdin, stdout, arguments and exit code to the CLI", async () => {
    const first = await start({ args: ["mcp-server", "a b"], input: "hello" });
    expect(first).toEqual({ code: 7, stdout: '["mcp-server","a b"]hello', stderr: "owlclaw: building\n" });
  });

  it("says and does nothing on a later start", async () => {
    await start();
    const before = await stampTimeMs();
    expect(await start()).toEqual({ code: 7, stdout: "[]", stderr: "" });
    expect(await stampTimeMs()).toBe(before);
  });

  it("builds again when a source has changed or gone", async () => {
    await writeFile(join(clone, "src", "extra.ts"), "export const extra = 1;\n");
    await start();
    await writeFile(join(clone, "src", "main.ts"), 'console.log("changed");\n');
    expect(await start()).toEqual({ code: 0, stdout: "changed\n", stderr: "owlclaw: building\n" });
    await rm(join(clone, "src", "extra.ts"));
    expect((await start()).stderr).toBe("owlclaw: building\n");
    await expect(stat(join(clone, "dist", "extra.d.ts"))).rejects.toThrow("ENOENT");
  });

  it("does not build again when a source was only touched", async () => {
    await start();
    await writeFile(join(clone, "src", "main.ts"), MAIN);
    expect((await start()).stderr).toBe("");
  });

  it("keeps the old build and fails when the new one does not compile", async () => {
    await start();
    await writeFile(join(clone, "src", "main.ts"), "const port: number = 'none';\n");
    const broken = await start();
    expect(broken).toMatchObject({ code: 1, stdout: "" });
    expect(broken.stderr).toContain("src/main.ts(1,7): error TS2322");
    await writeFile(join(clone, "src", "main.ts"), MAIN);
    expect(await start()).toEqual({ code: 7, stdout: "[]", stderr: "" });
  });

  it("serves several that start at once on a fresh clone, and one of them builds", async () => {
    const runs = await Promise.all(["1", "2", "3"].map((name) => start({ args: [name] })));
    expect(runs.map((run) => run.stdout)).toEqual(['["1"]', '["2"]', '["3"]']);
    // Who waits for long says so; how long that is depends on the machine.
    const said = runs.flatMap((run) => run.stderr.split("\n")).filter((line) => line !== "");
    const waiting = "owlclaw: another process is setting up this clone; waiting for it";
    expect(said.filter((line) => line !== waiting)).toEqual(["owlclaw: building"]);
  });

  it("takes over from a set-up that died", async () => {
    const lock = join(clone, ".cache", "setup.lock");
    await mkdir(lock, { recursive: true });
    const gone = execFile("true");
    await new Promise((resolve) => gone.once("close", resolve));
    await writeFile(join(lock, "owner"), `${hostname()} ${gone.pid}`);
    expect((await start()).code).toBe(7);
    await expect(stat(lock)).rejects.toThrow("ENOENT");
  });

  it("works through a chain of links from another folder", async () => {
    await mkdir(join(clone, "bin"));
    await symlink("../owlclaw", join(clone, "bin", "near"));
    await symlink(join(clone, "bin", "near"), join(clone, "bin", "far"));
    expect((await start({ command: join(clone, "bin", "far"), cwd: tmpdir() })).code).toBe(7);
    expect((await start({ command: "sh", args: ["near"], cwd: join(clone, "bin") })).code).toBe(7);
  });

  it("runs from a clone that it may not write to, once that is set up", async (context) => {
    if (process.getuid?.() !== 0) context.skip("only root can become a user who may not write");
    await start();
    await writeFile(join(clone, "src", "main.ts"), MAIN);
    expect(await start({ uid: 65_534, cwd: "/" })).toEqual({ code: 7, stdout: "[]", stderr: "" });
    await writeFile(join(clone, "src", "main.ts"), `${MAIN}// changed\n`);
    const refused = await start({ uid: 65_534, cwd: "/" });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("set up the clone once with a user who may");
  });

  it("installs nothing when OWLCLAW_NO_INSTALL forbids it, and says what to run", async () => {
    await rename(join(clone, "node_modules"), join(clone, "elsewhere"));
    const refused = await start({ env: { OWLCLAW_NO_INSTALL: "1" } });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain(`Run this, then try again: npm ci --prefix ${clone}`);
  });

  it("refuses an old Node by name, before anything else", async () => {
    const folder = join(clone, "old");
    await mkdir(folder);
    await writeFile(
      join(folder, "old.cjs"),
      'Object.defineProperty(process, "versions", { value: { node: "18.19.0" } });',
    );
    await writeFile(join(folder, "node"), `#!/bin/sh\nexec "${process.execPath}" -r "${folder}/old.cjs" "$@"\n`, {
      mode: 0o755,
    });
    const refused = await start({ env: { PATH: `${folder}:${process.env["PATH"]}` } });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^owlclaw: Node 20\.19 or newer is needed; .* is 18\.19\.0\n$/);
  });

  it("prints the command for system packages that it may not install, and goes on where they are not needed yet", async () => {
    const list = join(clone, "scripts", "system-packages.txt");
    const env = { OWLCLAW_NO_INSTALL: "1" };
    await writeFile(list, "run later no-such-command some-package a feature\n");
    const goesOn = await start({ env });
    expect(goesOn).toMatchObject({ code: 7, stdout: "[]" });
    expect(goesOn.stderr).toContain("missing: no-such-command (a feature)");
    expect(goesOn.stderr).toMatch(/install with: (sudo )?apt-get install -y some-package/);
    await writeFile(list, "run now no-such-command some-package a feature\n");
    expect(await start({ env })).toMatchObject({ code: 1, stdout: "" });
  });

  it("installs missing system packages where it may, and says so on stderr", async (context) => {
    const release = await readFile("/etc/os-release", "utf8").catch(() => "");
    if (!/debian|ubuntu/.test(release)) context.skip("not Debian or its kin");
    const folder = join(clone, "system");
    await mkdir(folder);
    // Stand-ins: a test must not change the machine that it runs on.
    await writeProgram(join(folder, "sudo"), `shift; exec "$@"`);
    await writeProgram(
      join(folder, "apt-get"),
      `echo "apt-get $*"; [ -t 0 ] && exit 1; cp "$0" "${folder}/made-up-command"`,
    );
    await writeFile(
      join(clone, "scripts", "system-packages.txt"),
      "run now made-up-command made-up-package a feature\n",
    );
    await mkdir(join(folder, "usr/sbin"), { recursive: true });
    const run = await start({ env: { PATH: `${folder}:${process.env["PATH"]}`, INSTALL_ROOT: folder } });
    expect(run).toMatchObject({ code: 7, stdout: "[]" });
    expect(run.stderr.split("\n")).toEqual([
      "owlclaw: building",
      "owlclaw: installing system packages: made-up-package",
      "apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 made-up-package",
      "",
    ]);
  });
});

async function writeProgram(path: string, body: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
}
