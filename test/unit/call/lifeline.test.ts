import { expect, test, vi } from "vitest";
import { Lifeline } from "../../../src/call/lifeline.ts";

test("tells each listener once, and late ones at once", () => {
  const life = new Lifeline();
  const [early, removed, late] = [vi.fn<() => void>(), vi.fn<() => void>(), vi.fn<() => void>()];
  life.onEnd(early);
  life.onEnd(removed)();
  life.end("over");
  life.end("again");
  life.onEnd(late);
  expect([early, removed, late].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 1]);
  expect(life.isOver).toBe(true);
});

test("its signal says the same, whether it was asked for before the end or after", () => {
  const before = new Lifeline();
  const { signal } = before;
  before.end("why");
  expect([signal.aborted, signal.reason]).toEqual([true, "why"]);
  const after = new Lifeline();
  after.end("why");
  expect([after.signal.aborted, after.signal.reason]).toEqual([true, "why"]);
});

test("follows a signal", () => {
  const controller = new AbortController();
  const life = Lifeline.of(controller.signal);
  expect(life.isOver).toBe(false);
  controller.abort();
  expect(life.isOver).toBe(true);
  expect(Lifeline.of(controller.signal).isOver).toBe(true);
});
