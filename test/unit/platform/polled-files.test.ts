import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { fileState, type FileStates } from "../../../src/config/file-state.ts";
import { PolledFiles } from "../../../src/platform/polled-files.ts";
import { temporaryFolder } from "../config/temporary-folder.ts";

interface View {
  readonly told: ReturnType<typeof vi.fn<() => void>>;
  readonly files: PolledFiles;
}

function viewOf(read: FileStates): View {
  const told = vi.fn<() => void>();
  const files = new PolledFiles(told);
  onTestFinished(() => files.stop());
  files.look(read);
  return { told, files };
}

const timesTold = ({ told }: View): number => told.mock.calls.length;

test("tells of a file behind a link that was swapped above it, and of nothing once stopped", async () => {
  const folder = temporaryFolder();
  for (const name of ["one", "two"]) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "policy.yaml"), name);
  }
  symlinkSync("one", join(folder, "current"));
  const swapFor = (name: string): void => {
    symlinkSync(name, join(folder, "next"));
    renameSync(join(folder, "next"), join(folder, "current"));
  };
  const path = join(folder, "current", "policy.yaml");
  const read = new Map([[path, await fileState(path)]]);
  const [stopped, kept] = [viewOf(read), viewOf(read)];

  swapFor("two");
  await expect.poll(() => timesTold(stopped)).toBe(1);
  await expect.poll(() => timesTold(kept)).toBe(1);

  stopped.files.stop();
  swapFor("one");
  await expect.poll(() => timesTold(kept)).toBe(2);
  expect(timesTold(stopped)).toBe(1);
});

test("tells of what changed after it was read and before it was looked at", async () => {
  const folder = temporaryFolder({ changed: "a", removed: "a" });
  const read = new Map<string, string>();
  for (const name of ["changed", "removed", "made"]) read.set(join(folder, name), await fileState(join(folder, name)));
  writeFileSync(join(folder, "changed"), "other");
  renameSync(join(folder, "removed"), join(folder, "made"));
  const view = viewOf(read);
  await expect.poll(() => timesTold(view)).toBe(3);
});

test("does not lose sight of a file when others come and go", async () => {
  const folder = temporaryFolder({ stays: "a", goes: "a", comes: "a" });
  const read = async (...names: string[]): Promise<FileStates> => {
    const paths = names.map((name) => join(folder, name));
    return new Map(await Promise.all(paths.map(async (path) => [path, await fileState(path)] as const)));
  };
  // At once, so that no look finds it half written.
  const swap = (name: string): void => {
    writeFileSync(join(folder, "next"), "other");
    renameSync(join(folder, "next"), join(folder, name));
  };
  const view = viewOf(await read("stays", "goes"));
  swap("stays");
  view.files.look(await read("stays", "comes"));
  await expect.poll(() => timesTold(view)).toBe(1);
  swap("comes");
  await expect.poll(() => timesTold(view)).toBe(2);
});

test("waits for a file that is still being written: half a policy must not be in force", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const path = join(temporaryFolder({ policy: "a" }), "policy");
  const view = viewOf(new Map([[path, await fileState(path)]]));
  // Between two looks it waits, and for nothing else.
  const lookDone = async (): Promise<void> => {
    while (vi.getTimerCount() === 0) await nextTurn();
  };
  await lookDone();
  for (const [text, waitMs] of [
    ["half", 500],
    ["half and more", 100],
  ] as const) {
    writeFileSync(path, text);
    vi.advanceTimersByTime(waitMs);
    await lookDone();
    expect(timesTold(view)).toBe(0);
  }
  vi.advanceTimersByTime(100);
  await lookDone();
  expect(timesTold(view)).toBe(1);
});
