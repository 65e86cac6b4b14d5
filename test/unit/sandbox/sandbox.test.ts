import { expect, test } from "vitest";
import { SerialQueue } from "../../../src/sandbox/sandbox.ts";

test("tasks run one after the other, in order, whatever becomes of them", async () => {
  const queue = new SerialQueue();
  const log: string[] = [];
  const task =
    (name: string, fails = false) =>
    async (): Promise<string> => {
      log.push(`${name} starts`);
      await new Promise((resolve) => setImmediate(resolve));
      log.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    };
  const results = await Promise.allSettled([queue.run(task("a", true), undefined), queue.run(task("b"), undefined)]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  expect(log).toEqual(["a starts", "a ends", "b starts", "b ends"]);
});

test("a task whose caller is gone before its turn never runs", async () => {
  const queue = new SerialQueue();
  const abort = new AbortController();
  let release = (): void => undefined;
  const first = queue.run(() => new Promise<void>((resolve) => (release = resolve)), undefined);
  const second = queue.run(() => Promise.resolve("ran"), abort.signal);
  abort.abort(new Error("gone"));
  await new Promise((resolve) => setImmediate(resolve));
  release();
  await first;
  await expect(second).rejects.toThrow("gone");
});
