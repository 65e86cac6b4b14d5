import { EventEmitter } from "node:events";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { FileWatch, watchFiles as WatchFiles } from "../../../src/platform/watch-files.ts";

/** A disk that tells of changes when the test says so: a real one may pause in the middle for longer than any limit. */
const disk = vi.hoisted(() => ({ watcher: undefined as EventEmitter | undefined }));

vi.mock("chokidar", () => ({
  watch: () =>
    (disk.watcher = Object.assign(new EventEmitter(), { add: () => undefined, close: async () => undefined })),
}));

const SETTLE_MS = 300;
const FILES = Array.from({ length: 50 }, (_, index) => `/nowhere/${index}.txt`);

let changes: (readonly string[])[];
let watch: FileWatch;
let watchFiles: typeof WatchFiles;

// Unit tests share their modules: this file needs one with the mocked watcher, and the others need theirs without it.
beforeAll(async () => {
  vi.resetModules();
  ({ watchFiles } = await import("../../../src/platform/watch-files.ts"));
});
afterAll(() => vi.resetModules());

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  changes = [];
  watch = watchFiles({ paths: ["/nowhere"], settleMs: SETTLE_MS }, (files) => changes.push([...files]));
  return async () => {
    await watch.close();
    vi.useRealTimers();
  };
});

function tell(path: string): void {
  disk.watcher?.emit("all", "change", path);
}

test("what happens together comes in one call, once the disk has been quiet for long enough", () => {
  for (const file of FILES) {
    vi.advanceTimersByTime(20);
    tell(file);
  }
  for (const file of FILES.slice(-5)) {
    vi.advanceTimersByTime(SETTLE_MS - 1);
    tell(file);
  }
  vi.advanceTimersByTime(SETTLE_MS - 1);
  expect(changes).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(changes).toEqual([FILES]);
  vi.advanceTimersByTime(60_000);
  expect(changes).toHaveLength(1);
});

test("what happens after a quiet moment comes in a call of its own", () => {
  for (const file of FILES.slice(0, 2)) {
    tell(file);
    vi.advanceTimersByTime(SETTLE_MS);
  }
  expect(changes).toEqual([[FILES[0]], [FILES[1]]]);
});
