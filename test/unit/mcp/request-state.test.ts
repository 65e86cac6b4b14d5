import { expect, test } from "vitest";
import { RequestStates } from "../../../src/mcp/request-state.ts";

test("a state opens for what it was sealed for, and for nothing else", () => {
  const states = new RequestStates();
  const state = states.seal({ name: "Ada" }, "alice calls echo");
  expect(states.open(state, "alice calls echo")).toEqual({ name: "Ada" });
  expect(() => states.open(state, "bob calls echo")).toThrow("invalid or has expired");
  expect(() => new RequestStates().open(state, "alice calls echo")).toThrow("invalid or has expired");
});

test("every changed byte is noticed", () => {
  const states = new RequestStates();
  const bytes = Buffer.from(states.seal({ n: 1 }, "x"), "base64url");
  for (let index = 0; index < bytes.length; index++) {
    const changed = Buffer.from(bytes);
    changed[index] = (changed[index] ?? 0) ^ 1;
    expect(() => states.open(changed.toString("base64url"), "x")).toThrow("invalid or has expired");
  }
  for (const text of ["", "A", "x".repeat(10), bytes.toString("base64url").slice(0, -1), "y".repeat(2_000_000)]) {
    expect(() => states.open(text, "x")).toThrow("invalid or has expired");
  }
});

test("a state ends by itself", () => {
  let now = 0;
  const states = new RequestStates({ now: () => now });
  const state = states.seal(1, "x");
  now = 14 * 60_000;
  expect(states.open(state, "x")).toBe(1);
  now = 16 * 60_000;
  expect(() => states.open(state, "x")).toThrow("expired");
});

test("what is inside cannot be read, and two states of the same thing differ", () => {
  const states = new RequestStates();
  const [first, second] = [states.seal("secret-answer", "x"), states.seal("secret-answer", "x")];
  expect(Buffer.from(first, "base64url").toString("latin1")).not.toContain("secret-answer");
  expect(first).not.toBe(second);
});
