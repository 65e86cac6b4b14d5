import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import type { OwlError } from "../../../src/errors/owl-error.ts";
import { AppendQueue } from "../../../src/ledger/append-queue.ts";
import type { Draft } from "../../../src/ledger/row.ts";
import type { Appended } from "../../../src/ledger/store.ts";

/** A store whose commits end when the test says so. */
function heldStore() {
  const commits: { readonly rows: number; readonly end: (error?: Error) => void }[] = [];
  const failures: string[] = [];
  let seq = 0;
  const queue = new AppendQueue({
    write: (drafts) =>
      new Promise<Appended>((resolve, reject) => {
        const end = (error?: Error): void => {
          if (error !== undefined) reject(error);
          else resolve({ seqs: drafts.map(() => ++seq), checkpoints: [], head: { seq, hash: "" } });
        };
        commits.push({ rows: drafts.length, end });
      }),
    onWritten: () => undefined,
    onFailed: (error: OwlError) => void failures.push(error.message),
    gathered: () => Promise.resolve(),
  });
  return { queue, commits, failures };
}

const DRAFT: Draft = [];
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await setImmediate();
};

test("rows that come while a commit runs share the next one", async () => {
  const { queue, commits } = heldStore();
  const first = [queue.append(DRAFT), queue.append(DRAFT)];
  await until(() => commits.length === 1);
  const later = Array.from({ length: 700 }, () => queue.append(DRAFT));
  commits[0]?.end();
  expect(await Promise.all(first)).toEqual([{ seq: 1 }, { seq: 2 }]);
  await until(() => commits.length === 2);
  commits[1]?.end();
  await until(() => commits.length === 3);
  commits[2]?.end();
  await Promise.all(later);
  expect(commits.map(({ rows }) => rows)).toEqual([2, 512, 188]);
});

test("a commit that fails rejects its own rows and no others", async () => {
  const { queue, commits, failures } = heldStore();
  const lost = queue.append(DRAFT);
  await until(() => commits.length === 1);
  const kept = queue.append(DRAFT);
  commits[0]?.end(new Error("the disk is full"));
  await expect(lost).rejects.toMatchObject({ kind: "store_unavailable", message: "the disk is full" });
  await until(() => commits.length === 2);
  commits[1]?.end();
  expect(await kept).toEqual({ seq: 1 });
  expect(failures).toEqual(["the disk is full"]);
});

test("a store that does not answer is given up: who waits is told, who comes is told at once, until it answers", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { queue, commits } = heldStore();
  const stuck = queue.append(DRAFT);
  await until(() => commits.length === 1);
  const behind = queue.append(DRAFT);
  const told = Promise.allSettled([stuck, behind]);
  vi.advanceTimersByTime(10_000);
  expect((await told).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await expect(queue.append(DRAFT)).rejects.toThrow("has not answered");
  commits[0]?.end();
  await queue.drained();
  const again = queue.append(DRAFT);
  await until(() => commits.length === 2);
  commits[1]?.end();
  expect(await again).toEqual({ seq: 2 });
});
