import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCli } from "../integration/cli-process.ts";
import { newFolder } from "../integration/governance-lab.ts";

/** In a folder like /tmp, another user makes the server's data folder before the server does. */
const NOBODY = 65_534;

describe.skipIf(process.getuid?.() !== 0)("a data folder (another user needs root to be tried)", () => {
  function sharedFolder(): string {
    const folder = newFolder();
    chmodSync(folder, 0o1777);
    chmodSync(join(folder, ".."), 0o755);
    return folder;
  }

  const asNobody = (command: string, ...args: readonly string[]): Buffer =>
    execFileSync(command, args, { uid: NOBODY, gid: NOBODY, cwd: "/" });

  const validate = (root: string): ReturnType<typeof runCli> =>
    runCli(["mcp-server", "config", "validate"], { env: { SANDBOX_ROOT: root } });

  test.each([
    [
      "made by another user",
      (path: string) => asNobody("mkdir", "-m", "777", path),
      /belongs to another user \(uid 65534\)/,
    ],
    [
      "that is a link of another user",
      (path: string) => asNobody("ln", "-s", "/var/tmp", path),
      /is a link that another user made/,
    ],
  ])("%s where every user may write stops the start", async (_what, make, reason) => {
    const root = join(sharedFolder(), "data");
    make(root);
    const { code, err } = await validate(root);
    expect(code).toBe(2);
    expect(err).toMatch(reason);
    expect(err).toContain("sandbox.root");
    const started = await runCli(["mcp-server", "start"], { env: { SANDBOX_ROOT: root } });
    expect(started.err).toMatch(reason);
  });

  test("of another user elsewhere serves root, as with sudo, and one that is missing is made", async () => {
    const home = newFolder();
    const root = join(home, "data");
    mkdirSync(root);
    execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, home]);
    expect(await validate(root)).toMatchObject({ code: 0 });
    expect(await validate(join(sharedFolder(), "data"))).toMatchObject({ code: 0 });
  });
});
