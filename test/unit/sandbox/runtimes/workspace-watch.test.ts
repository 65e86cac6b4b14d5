import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  createWorkspaceWatch,
  type WatchedWorkspace,
  type WorkspaceSize,
} from "../../../../src/sandbox/runtimes/workspace-watch.ts";

const MIB = 1024 * 1024;

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-watch-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function watched(folder: string, processes: readonly number[] = []): WatchedWorkspace {
  return { folder, maxBytes: MIB, processes: async () => processes };
}

test("a folder that grows past its limit is told once, and others are not", async () => {
  const watch = createWorkspaceWatch({ intervalMs: 5 });
  onTestFinished(() => watch.close());
  const [grown, small] = [makeFolder(), makeFolder()];
  const [onGrown, onSmall] = [vi.fn<() => void>(), vi.fn<() => void>()];
  watch.watch(watched(grown), onGrown);
  watch.watch(watched(small), onSmall);
  writeFileSync(join(grown, "big"), Buffer.alloc(2 * MIB, 1));
  await vi.waitFor(() => expect(onGrown).toHaveBeenCalledOnce(), 20_000);
  expect(onSmall).not.toHaveBeenCalled();
});

test("nothing is measured once nothing is watched: without a folder the tool would measure the whole machine", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const measure = vi.fn<() => Promise<Map<string, WorkspaceSize>>>(async () => new Map());
  const watch = createWorkspaceWatch({ intervalMs: 1000, measure });
  const unwatch = watch.watch(watched("/nowhere"), () => undefined);
  await vi.advanceTimersByTimeAsync(1000);
  expect(measure).toHaveBeenCalledOnce();
  unwatch();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(measure).toHaveBeenCalledOnce();
});

test("a measurement under way is given up when the watch is closed", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const signals: AbortSignal[] = [];
  const measure = async (
    _watched: readonly WatchedWorkspace[],
    signal: AbortSignal,
  ): Promise<Map<string, WorkspaceSize>> => {
    signals.push(signal);
    return await new Promise(() => undefined);
  };
  const watch = createWorkspaceWatch({ intervalMs: 1000, measure });
  watch.watch(watched("/nowhere"), () => undefined);
  await vi.advanceTimersByTimeAsync(1000);
  watch.close();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});

test.each([
  [
    "a file that was removed and is still open",
    "import os, time; f = open('x', 'wb'); os.unlink('x'); f.write(b'1' * (2 << 20)); f.flush(); time.sleep(600)",
  ],
  ["one file for less than 16 KiB", "import time\nfor n in range(80): open('f%d' % n, 'w')\ntime.sleep(600)"],
])("%s counts", async (_what, code) => {
  const folder = makeFolder();
  const child = spawn("python3", ["-c", code], { cwd: folder, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const watch = createWorkspaceWatch({ intervalMs: 5 });
  onTestFinished(() => watch.close());
  const onExcess = vi.fn<() => void>();
  watch.watch(watched(folder, [child.pid ?? 0]), onExcess);
  await vi.waitFor(() => expect(onExcess).toHaveBeenCalledOnce(), 20_000);
});

test("what is open beside the workspace does not count", async () => {
  const [folder, other] = [makeFolder(), mkdtempSync("/dev/shm/owlclaw-watch-")];
  onTestFinished(() => rmSync(other, { recursive: true, force: true }));
  const code =
    "import os, time; f = open('x', 'wb'); os.unlink('x'); f.write(b'1' * (2 << 20)); f.flush(); print('open', flush=True); time.sleep(600)";
  const child = spawn("python3", ["-c", code], { cwd: other, stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  const watch = createWorkspaceWatch({ intervalMs: 5 });
  onTestFinished(() => watch.close());
  const [onExcess, onGrown] = [vi.fn<() => void>(), vi.fn<() => void>()];
  watch.watch(watched(folder, [child.pid ?? 0]), onExcess);
  // Measured together: when this one is told of, the other has been looked at as well.
  const grown = makeFolder();
  writeFileSync(join(grown, "big"), Buffer.alloc(2 * MIB, 1));
  watch.watch(watched(grown), onGrown);
  await vi.waitFor(() => expect(onGrown).toHaveBeenCalledOnce(), 20_000);
  expect(onExcess).not.toHaveBeenCalled();
});
