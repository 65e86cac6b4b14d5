import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import type { OwlError } from "../../../../src/errors/owl-error.ts";
import { SettlementQueue } from "../../../../src/governance/ledger/settlement-queue.ts";
import type { Settled, Settlement } from "../../../../src/governance/ledger/store.ts";

/** A store whose commits end when the test says so. */
function heldStore() {
  const commits: {
    readonly rows: number;
    readonly batch: readonly Settlement[];
    readonly end: (error?: Error) => void;
  }[] = [];
  const failures: string[] = [];
  let seq = 0;
  const queue = new SettlementQueue({
    write: (batch) =>
      new Promise<Settled>((resolve, reject) => {
        const end = (error?: Error): void => {
          if (error !== undefined) reject(error);
          else {
            const seqs = batch.map(() => ++seq);
            resolve({ seqs, spendings: batch.map(() => []), checkpoints: [], head: { seq, hash: "" } });
          }
        };
        commits.push({ rows: batch.length, batch, end });
      }),
    onWritten: () => undefined,
    onFailed: (error: OwlError) => void failures.push(error.message),
    gathered: () => Promise.resolve(),
  });
  return { queue, commits, failures };
}

const ROW: Settlement = { draft: [] };
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await setImmediate();
};

test("rows that come while a commit runs share the next one", async () => {
  const { queue, commits } = heldStore();
  const first = [queue.settle(ROW), queue.settle(ROW)];
  await until(() => commits.length === 1);
  const later = Array.from({ length: 700 }, () => queue.settle(ROW));
  commits[0]?.end();
  expect(await Promise.all(first)).toMatchObject([{ seq: 1 }, { seq: 2 }]);
  await until(() => commits.length === 2);
  commits[1]?.end();
  await until(() => commits.length === 3);
  commits[2]?.end();
  await Promise.all(later);
  expect(commits.map(({ rows }) => rows)).toEqual([2, 512, 188]);
});

test("a commit that fails rejects its own rows and no others", async () => {
  const { queue, commits, failures } = heldStore();
  const lost = queue.settle(ROW);
  await until(() => commits.length === 1);
  const kept = queue.settle(ROW);
  commits[0]?.end(new Error("the disk is full"));
  await expect(lost).rejects.toMatchObject({ kind: "store_unavailable", message: "the disk is full" });
  await until(() => commits.length === 2);
  commits[1]?.end();
  expect(await kept).toMatchObject({ seq: 1 });
  expect(failures).toEqual(["the disk is full"]);
});

test("a store that does not answer is given up: who waits is told, who comes is told at once, until it answers", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { queue, commits } = heldStore();
  const stuck = queue.settle(ROW);
  await until(() => commits.length === 1);
  const behind = queue.settle(ROW);
  const told = Promise.allSettled([stuck, behind]);
  vi.advanceTimersByTime(10_000);
  expect((await told).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await expect(queue.settle(ROW)).rejects.toThrow("has not answered");
  commits[0]?.end();
  await queue.drained();
  const again = queue.settle(ROW);
  await until(() => commits.length === 2);
  commits[1]?.end();
  expect(await again).toMatchObject({ seq: 2 });
});

test("the end of a call that cannot be written is written once, with the first commit that works or when it is asked for; a row alone is not", async () => {
  const { queue, commits } = heldStore();
  const ends = [1, 2].map((call) => ({ call, costMicros: 5, draft: [] }));
  const lost = Promise.allSettled([...ends.map((end) => queue.settle(end)), queue.settle(ROW)]);
  await until(() => commits.length === 1);
  commits[0]?.end(new Error("the disk is full"));
  expect((await lost).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  const paid = queue.payOff();
  commits[1]?.end(new Error("the disk is full"));
  await paid;
  const next = queue.settle(ROW);
  await until(() => commits.length === 3);
  commits[2]?.end();
  await next;
  await until(() => commits.length === 4);
  commits[3]?.end();
  await queue.drained();
  await queue.payOff();
  expect(commits.map(({ batch }) => batch)).toEqual([[...ends, ROW], ends, [ROW], ends]);
});
