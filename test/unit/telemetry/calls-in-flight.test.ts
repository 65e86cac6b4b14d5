import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CallsInFlight } from "../../../src/telemetry/calls-in-flight.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance", "setTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** Whether it has resolved by now, without any time passing. */
async function isOver(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), Promise.resolve().then(async () => false)]);
}

async function told(calls: CallsInFlight): Promise<() => boolean> {
  let isSettled = false;
  void calls.settled().then(() => (isSettled = true));
  await Promise.resolve();
  return () => isSettled;
}

test("nobody waits when nothing is under way", async () => {
  expect(await isOver(new CallsInFlight().settled())).toBe(true);
});

test("whoever asks waits for the calls that are under way, and not for later ones", async () => {
  const calls = new CallsInFlight();
  const first = calls.begin();
  const second = calls.begin();
  const isSettled = await told(calls);
  calls.begin();
  first.end();
  await Promise.resolve();
  expect(isSettled()).toBe(false);
  second.end();
  await Promise.resolve();
  expect(isSettled()).toBe(true);
});

test("a call that takes its time holds nobody up for longer than a millisecond, and later nobody at all", async () => {
  const calls = new CallsInFlight();
  const long = calls.begin();
  const isSettled = await told(calls);
  await vi.advanceTimersByTimeAsync(1);
  expect(isSettled()).toBe(true);
  await vi.advanceTimersByTimeAsync(5);
  expect(await isOver(calls.settled())).toBe(true);
  long.end();
  expect(await isOver(calls.settled())).toBe(true);
});

test("two who ask at the same time are told at the same time", async () => {
  const calls = new CallsInFlight();
  const call = calls.begin();
  const both = [await told(calls), await told(calls)];
  call.end();
  await Promise.resolve();
  expect(both.map((isSettled) => isSettled())).toEqual([true, true]);
});
