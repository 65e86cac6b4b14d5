import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeUnless } from "../setup/mandatory.ts";
import { whyNoMachine } from "./machine.ts";
import { type MicrosandboxParts, microsandboxParts, moveDisks, MSB_HOME } from "./microsandbox-parts.ts";

const PROJECT = resolve(import.meta.dirname, "../..");
/** The device is there and is none: what machines of some providers have. It stays so for this one process. */
const USELESS_KVM = 'if [ -e /dev/kvm ]; then mount --bind /dev/null /dev/kvm; fi; exec "$@"';

interface Check {
  readonly name: string;
  readonly status: string;
  readonly message: string;
  readonly fix?: string;
}

let parts: MicrosandboxParts;
let folder: string;

describeUnless(await whyNoMachine(), "the doctor of a server with microsandbox beside it", () => {
  beforeAll(async () => {
    parts = await microsandboxParts();
    folder = mkdtempSync(join(tmpdir(), "owlclaw-msb-"));
    for (const name of ["dist", "package.json"]) cpSync(join(PROJECT, name), join(folder, name), { recursive: true });
    cpSync(parts.home, join(folder, "msb"), { recursive: true });
    moveDisks(join(folder, "msb"), MSB_HOME, join(folder, "msb"));
    mkdirSync(join(folder, "node_modules"));
    for (const from of [PROJECT, parts.packages]) {
      for (const name of readdirSync(join(from, "node_modules")).filter((each) => !each.startsWith(".")))
        symlinkSync(join(from, "node_modules", name), join(folder, "node_modules", name));
    }
  });

  afterAll(() => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  function runtimeRow(node: string, runtime: string): Check | undefined {
    const set = [`sandbox.root=${join(folder, "data")}`, `sandbox.runtime=${runtime}`, "tools.toolsets=code"];
    const command = [node, "dist/main.js", "mcp-server", "doctor", "--json", ...set.flatMap((each) => ["--set", each])];
    const { stdout, stderr } = spawnSync("unshare", ["--mount", "sh", "-c", USELESS_KVM, "sh", ...command], {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: folder, MSB_HOME: join(folder, "msb") },
    });
    expect(stderr).not.toContain("Error");
    const checks = JSON.parse(stdout) as Check[];
    const row = checks.find(({ name }) => name === "runtime microsandbox");
    return row?.status === "failed" ? checks[checks.indexOf(row) + 1] : row;
  }

  test("says that no microVM boots, why, and what to do; nothing of the attempt stays", () => {
    const why = expect.stringMatching(
      /^a microVM does not start here: (there is no \/dev\/kvm|\/dev\/kvm is there, and boots nothing) \(/,
    ) as unknown;
    const fix = expect.stringMatching(/nested virtualisation.*msb doctor.*bubblewrap or docker/) as unknown;
    expect(runtimeRow(parts.node, "auto")).toMatchObject({ status: "warning", message: why, fix });
    expect(runtimeRow(parts.node, "microsandbox")).toMatchObject({ status: "failed", message: why, fix });
    expect(readdirSync(join(folder, "msb/sandboxes"))).toEqual([]);
  });

  test("says on Node 20 that a newer one is needed", (context) => {
    if (!process.version.startsWith("v20.")) context.skip(`the tests run on Node ${process.version}`);
    expect(runtimeRow(process.execPath, "auto")).toMatchObject({
      status: "warning",
      message: `microsandbox needs Node 22 or newer, and this is ${process.version}`,
      fix: expect.stringContaining("install the npm package microsandbox") as unknown,
    });
  });
});
