import { expect, test } from "vitest";
import { RequestGate } from "../../../src/transport/stdio/line-reader.ts";

/** Tasks that end when told to, in any order. */
function heldTasks(
  gate: RequestGate,
  count: number,
): { started: number[]; finish: (index: number) => void; all: Promise<number>[] } {
  const started: number[] = [];
  const finish = new Map<number, () => void>();
  const all = Array.from({ length: count }, (_, index) =>
    gate.run(10, async () => {
      started.push(index);
      await new Promise<void>((resolve) => finish.set(index, resolve));
      return index;
    }),
  );
  return { started, finish: (index) => finish.get(index)?.(), all };
}

test("runs as many as it may and the others in the order in which they came", async () => {
  const { started, finish, all } = heldTasks(new RequestGate({ maxRunning: 2, maxWaitingBytes: 100 }), 4);
  expect(started).toEqual([0, 1]);
  finish(1);
  await all[1];
  await Promise.resolve();
  expect(started).toEqual([0, 1, 2]);
  for (const index of [0, 2]) finish(index);
  await Promise.all([all[0], all[2]]);
  finish(3);
  expect(await Promise.all(all)).toEqual([0, 1, 2, 3]);
});

test("a failed task gives its place to the next", async () => {
  const gate = new RequestGate({ maxRunning: 1, maxWaitingBytes: 100 });
  const failing = gate.run(1, () => Promise.reject(new Error("no")));
  const next = gate.run(1, () => Promise.resolve("yes"));
  await expect(failing).rejects.toThrow("no");
  expect(await next).toBe("yes");
});

test("refuses what it has no room for, and takes more when there is room again", async () => {
  const gate = new RequestGate({ maxRunning: 1, maxWaitingBytes: 15 });
  const { finish, all } = heldTasks(gate, 2);
  await expect(gate.run(10, () => Promise.resolve())).rejects.toMatchObject({ kind: "overloaded", retryable: true });
  finish(0);
  await all[0];
  const later = gate.run(10, () => Promise.resolve("served"));
  finish(1);
  await all[1];
  expect(await later).toBe("served");
});
