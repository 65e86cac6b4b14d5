import { expect, test } from "vitest";
import { RequestStates, KeptStates } from "../../../src/mcp/request-state.ts";

test("a state is used once, until it would have ended by itself", () => {
  let nowMs = 0;
  const used = new KeptStates(() => nowMs);
  expect([used.use("a", 1000), used.use("b", 1000), used.use("a", 1000)]).toEqual([true, true, false]);
  nowMs = 999;
  expect(used.use("a", 1000)).toBe(false);
  nowMs = 1000;
  expect(used.use("a", 1000)).toBe(true);
});

test("a state is the same however it is spelled", () => {
  const states = new RequestStates();
  const state = states.seal({}, "x");
  const spelled = [
    `${state}==`,
    ` ${state}`,
    state.replaceAll("-", "+").replaceAll("_", "/"),
    `${state.slice(0, 4)}\n${state.slice(4)}`,
  ];
  for (const other of spelled) {
    expect(states.open(other, "x")).toEqual({});
    expect(states.idOf(other)).toBe(states.idOf(state));
  }
});

test("nothing is forgotten early to make room", () => {
  const used = new KeptStates(() => 0);
  for (let index = 0; index < 100_000; index++) used.use(String(index), 1000);
  expect(() => used.use("one more", 1000)).toThrow("too many calls");
  expect(used.use("0", 1000)).toBe(false);
});
