import { describe, expect, test } from "vitest";
import { pausedOwner, StartPauses } from "../../../src/sandbox/start-pauses.ts";

function pausesAt(): { pauses: StartPauses; advance: (ms: number) => void } {
  let nowMs = 1000;
  return { pauses: new StartPauses(() => nowMs), advance: (ms) => (nowMs += ms) };
}

describe("the pause before an owner's next sandbox", () => {
  test("is none without a violation", () => {
    expect(pausesAt().pauses.leftMs("ada")).toBe(0);
  });

  test("doubles with every violation, up to 30 s, and counts from the last one", () => {
    const { pauses, advance } = pausesAt();
    const pauseMs = Array.from({ length: 7 }, () => {
      pauses.addViolation("ada");
      return pauses.leftMs("ada");
    });
    expect(pauseMs).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    advance(29_999);
    expect(pauses.leftMs("ada")).toBe(1);
    advance(1);
    expect(pauses.leftMs("ada")).toBe(0);
  });

  test("is the owner's own", () => {
    const { pauses } = pausesAt();
    pauses.addViolation("ada");
    expect(pauses.leftMs("bob")).toBe(0);
  });

  test("begins anew after two minutes without a violation", () => {
    const { pauses, advance } = pausesAt();
    for (let count = 0; count < 5; count += 1) pauses.addViolation("ada");
    advance(120_000);
    pauses.addViolation("ada");
    expect(pauses.leftMs("ada")).toBe(1000);
  });

  test("forgets the owner without a violation for longest when there are too many", () => {
    const { pauses } = pausesAt();
    pauses.addViolation("first");
    for (let count = 0; count < 10_000; count += 1) pauses.addViolation(`owner ${count}`);
    expect(pauses.leftMs("first")).toBe(0);
    expect(pauses.leftMs("owner 0")).toBe(1000);
  });

  test("ends with the signal", async () => {
    const { pauses } = pausesAt();
    pauses.addViolation("ada");
    const stopped = new Error("stopped");
    await expect(pauses.wait("ada", AbortSignal.abort(stopped))).rejects.toThrow("aborted");
  });
});

test("anonymous clients of other MCP sessions are other owners", () => {
  const facts = { id: "one", ownerId: "anonymous", mcpSessionId: "s1" };
  expect(pausedOwner(facts)).toBe(pausedOwner({ ...facts, id: "two" }));
  expect(pausedOwner(facts)).not.toBe(pausedOwner({ ...facts, mcpSessionId: "s2" }));
  expect(pausedOwner({ ...facts, ownerId: "ada" })).toBe("ada");
});
