import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { createWorkspaceWatch } from "../../../src/runtimes/workspace-watch.ts";

const MIB = 1024 * 1024;

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-watch-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("a folder that grows past its limit is told once, and others are not", async () => {
  const watch = createWorkspaceWatch({ intervalMs: 5 });
  onTestFinished(() => watch.close());
  const [grown, small] = [makeFolder(), makeFolder()];
  const [onGrown, onSmall] = [vi.fn<() => void>(), vi.fn<() => void>()];
  watch.watch(grown, MIB, onGrown);
  watch.watch(small, MIB, onSmall);
  writeFileSync(join(grown, "big"), Buffer.alloc(2 * MIB, 1));
  await vi.waitFor(() => expect(onGrown).toHaveBeenCalledOnce(), 20_000);
  expect(onSmall).not.toHaveBeenCalled();
});

test("nothing is measured once nothing is watched: without a folder the tool would measure the whole machine", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const measure = vi.fn<() => Promise<Map<string, number>>>(async () => new Map());
  const watch = createWorkspaceWatch({ intervalMs: 1000, measure });
  const unwatch = watch.watch("/nowhere", MIB, () => undefined);
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
  const measure = async (_folders: readonly string[], signal: AbortSignal): Promise<Map<string, number>> => {
    signals.push(signal);
    return await new Promise(() => undefined);
  };
  const watch = createWorkspaceWatch({ intervalMs: 1000, measure });
  watch.watch("/nowhere", MIB, () => undefined);
  await vi.advanceTimersByTimeAsync(1000);
  watch.close();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});
