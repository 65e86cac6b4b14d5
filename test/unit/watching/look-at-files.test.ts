import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { lookAtFiles } from "../../../src/watching/look-at-files.ts";
import { temporaryFolder } from "../config/temporary-folder.ts";

/** What changes before the first look is taken for what was there: so it changes again with every try. */
const AGAIN = { timeout: 20_000, interval: 700 };

test("tells of a file behind a link that was swapped above it, and of nothing once stopped", async () => {
  const folder = temporaryFolder();
  for (const name of ["one", "two"]) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "policy.yaml"), name);
  }
  symlinkSync("one", join(folder, "current"));
  const [told, kept] = [vi.fn<() => void>(), vi.fn<() => void>()];
  const paths = [join(folder, "current", "policy.yaml")];
  const stop = lookAtFiles(paths, told);
  onTestFinished(lookAtFiles(paths, kept));
  onTestFinished(stop);

  const swap = (turn: number): void => {
    symlinkSync(turn % 2 === 0 ? "two" : "one", join(folder, "next"));
    renameSync(join(folder, "next"), join(folder, "current"));
  };
  const seen = async (listener: typeof told, change: (turn: number) => void): Promise<void> => {
    const before = listener.mock.calls.length;
    let turn = 0;
    await vi.waitFor(() => {
      change(turn++);
      expect(listener.mock.calls.length).toBeGreaterThan(before);
    }, AGAIN);
  };
  await seen(told, swap);

  stop();
  const last = told.mock.calls.length;
  await seen(kept, swap);
  expect(told).toHaveBeenCalledTimes(last);
});
