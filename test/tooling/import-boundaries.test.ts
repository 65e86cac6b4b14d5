import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "owlclaw-lint-"));
  for (const file of [".oxlintrc.json", ".oxlint-boundaries.json"]) await cp(join(ROOT, file), join(folder, file));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** The imports of a file at `path` that lint refuses. */
async function refused(path: string, imports: readonly string[]): Promise<string[]> {
  const file = join(folder, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, imports.map((name, index) => `import { a as a${index} } from "${name}";\n`).join(""));
  const output = await lint(path);
  await rm(file);
  return imports.filter((_, index) => output.includes(`${path}:${index + 1}:`));
}

function lint(path: string): Promise<string> {
  const args = ["-f", "unix", "-A", "all", "-D", "no-restricted-imports", path];
  return new Promise((resolve) => {
    execFile(join(ROOT, "node_modules", ".bin", "oxlint"), args, { cwd: folder }, (_error, stdout, stderr) => {
      resolve(stdout + stderr);
    });
  });
}

describe("imports go one way", () => {
  it.each([
    ["src/errors/a.ts", ["../config/schema.ts"]],
    ["src/config/a.ts", ["../telemetry/logger.ts"]],
    ["src/processes/a.ts", ["../errors/owl-error.ts", "../telemetry/logger.ts"]],
    ["src/auth/a.ts", ["../protocol/a.ts"]],
    ["src/governance/a.ts", ["../tools/code/run.ts", "../capabilities/registry.ts", "../auth/bearer-token.ts"]],
    ["src/governance/deep/a.ts", ["../../tools/code/run.ts", "../../auth/bearer-token.ts"]],
    ["src/tools/code/a.ts", ["../../governance/policy.ts", "../../runtimes/runtime.ts"]],
    ["src/runtimes/docker/a.ts", ["@modelcontextprotocol/server", "../../sandbox/a.ts"]],
    ["src/capabilities/a.ts", ["../pipeline/a.ts", "../handlers/a.ts", "@modelcontextprotocol/server"]],
    ["src/pipeline/a.ts", ["../protocol/a.ts", "../tools/a.ts"]],
    ["src/protocol/a.ts", ["../transports/a.ts", "../server/a.ts"]],
    ["src/transports/a.ts", ["../server/a.ts", "../handlers/a.ts"]],
    ["src/server/a.ts", ["../cli/a.ts", "../main.ts", "../index.ts", "../../test/setup/a.ts"]],
  ])("%s may not import %j", async (path, imports) => {
    expect(await refused(path, imports)).toEqual(imports);
  });

  it.each([
    ["src/governance/a.ts", ["../auth/principal.ts", "../errors/owl-error.ts", "./budget.ts", "node:fs"]],
    ["src/governance/deep/a.ts", ["../../auth/principal.ts", "../../processes/identity.ts", "../budget.ts"]],
    ["src/tools/code/a.ts", ["../../sandbox/a.ts", "../sandbox/create.ts", "../../capabilities/define-tool.ts"]],
    ["src/protocol/a.ts", ["../pipeline/a.ts", "../capabilities/a.ts", "@modelcontextprotocol/server"]],
    ["src/server/a.ts", ["../transports/a.ts", "../handlers/a.ts", "../auth/bearer-token.ts"]],
    ["src/cli/a.ts", ["../server/a.ts", "../config/schema.ts"]],
  ])("%s may import %j", async (path, imports) => {
    expect(await refused(path, imports)).toEqual([]);
  });
});
