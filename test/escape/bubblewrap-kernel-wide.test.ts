import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { attachedDisks } from "../../src/sandbox/runtimes/bubblewrap/disk-image.ts";
import { isRoot, type Lab, openLab, type LabOptions } from "./bubblewrap-instances.ts";
import { callTool } from "./http-client.ts";
import { startHttp } from "./server.ts";

async function openedLab(options: LabOptions = {}): Promise<Lab> {
  const lab = await openLab(options);
  onTestFinished(() => lab.close());
  return lab;
}

/** Opens terminals and keeps them; prints how many it got. */
const openTerminals = (most: number): string => `
import os
kept = []
try:
    while len(kept) < ${most}: kept.append(os.openpty())
except OSError: pass
print(len(kept), flush=True)
`;

// Enough to show a limit, and few enough to leave terminals to whatever else runs on the machine.
const MANY = 200;

describe.skipIf(!isRoot)("terminals (only root can limit them)", () => {
  test("of one sandbox have a maximum of their own, and a neighbour gets some while it holds them", async () => {
    const lab = await openedLab();
    const [hog, neighbour] = [await lab.start(), await lab.start()];
    const held = await hog.python(`${openTerminals(MANY)}
if os.fork() == 0:
    import signal
    signal.pause()`);
    expect(Number(held.stdout)).toBe(48);
    expect((await neighbour.python(openTerminals(1))).stdout).toBe("1\n");
  });

  test("have none without that limit", async () => {
    const lab = await openedLab({ off: ["terminal-limit"] });
    const hog = await lab.start();
    expect(Number((await hog.python(openTerminals(MANY))).stdout)).toBe(MANY);
  });

  test("work as terminals do: a program finds its own, and what is written arrives", async () => {
    const lab = await openedLab();
    const inside = await lab.start();
    const code = `
import os, pty
child, master = pty.fork()
if child == 0:
    print(os.ttyname(0), os.isatty(0), flush=True); os._exit(0)
print(os.read(master, 100).decode().strip())`;
    expect((await inside.python(code)).stdout).toBe("/dev/pts/0 True\n");
  });
});

test.skipIf(!isRoot)(
  "a disk that the host unmounts is free while an earlier sandbox runs (only root can mount)",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "owlclaw-disk-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const [image, target] = [join(folder, "disk.img"), join(folder, "disk")];
    mkdirSync(target);
    execFileSync("truncate", ["-s", "16M", image]);
    execFileSync("mkfs.ext4", ["-q", image]);
    // A mount namespace in which mounts are shared, as they are on a machine with systemd.
    const within = ["unshare", "--mount", "--propagation", "shared", "--"];
    const mounted = ["sh", "-c", `mount -o loop "$0" "$1" && shift && exec "$@"`, image, target];
    const server = await startHttp({
      config: { sandbox: { root: join(folder, "data"), pool: { size: 0 } }, handlers: {} },
      within: [...within, ...mounted],
    });
    onTestFinished(() => server.stop());
    const made = await callTool(server.origin, "code_run", { code: "1 + 1" });
    const session_id: unknown = made.json.result.structuredContent.session_id;
    const isAttached = async (): Promise<boolean> => (await attachedDisks()).some(({ file }) => file === image);
    expect(await isAttached()).toBe(true);
    execFileSync("nsenter", ["--mount", `--target=${server.child.pid}`, "umount", target]);
    await expect.poll(isAttached).toBe(false);
    const after = await callTool(server.origin, "code_run", { code: "2 + 2", session_id });
    expect(after.json.result.structuredContent).toMatchObject({ value: "4", session_created: false });
  },
);
