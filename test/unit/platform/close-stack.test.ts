import { expect, test } from "vitest";
import { CloseStack } from "../../../src/platform/close-stack.ts";

function part(name: string, closed: string[], failure?: Error): { close(): Promise<void> } {
  return {
    async close() {
      closed.push(name);
      if (failure !== undefined) throw failure;
    },
  };
}

test("closes in reverse, once, however often it is asked", async () => {
  const closed: string[] = [];
  const stack = new CloseStack();
  for (const name of ["first", "second", "third"]) stack.add(part(name, closed));
  await Promise.all([stack.close(), stack.close()]);
  await stack.close();
  expect(closed).toEqual(["third", "second", "first"]);
});

test("closes the others when one fails to close, and tells the first failure", async () => {
  const closed: string[] = [];
  const stack = new CloseStack();
  stack.add(part("first", closed, new Error("first broke")));
  stack.add(part("second", closed));
  stack.add(part("third", closed, new Error("third broke")));
  await expect(stack.close()).rejects.toThrow("third broke");
  expect(closed).toEqual(["third", "second", "first"]);
});

test("closes what was opened when a later part cannot be opened", async () => {
  const closed: string[] = [];
  const opening = CloseStack.opening(async (stack) => {
    stack.add(part("first", closed));
    stack.defer(() => closed.push("second"));
    throw new Error("the third cannot be opened");
  });
  await expect(opening).rejects.toThrow("the third cannot be opened");
  expect(closed).toEqual(["second", "first"]);
});
