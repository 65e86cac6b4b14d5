import { expect, test } from "vitest";
import { ANONYMOUS, type Principal } from "../../../src/auth/principal.ts";
import { VerifiedTokens } from "../../../src/auth/verify-token.ts";

const SAME = { keyGeneration: 1, groupsClaim: "groups" };
const now = { nowMs: 0, ...SAME };

function principal(id: string): Principal {
  return { ...ANONYMOUS, id };
}

function filled(maxEntries: number, ids: readonly string[]): VerifiedTokens {
  const tokens = new VerifiedTokens(maxEntries);
  for (const id of ids) tokens.set(id, { principal: principal(id), expiresAtMs: 1000, ...SAME });
  return tokens;
}

test("forgets the least recently used beyond its size", () => {
  const tokens = filled(2, ["a", "b"]);
  tokens.get("a", now);
  tokens.set("c", { principal: principal("c"), expiresAtMs: 1000, ...SAME });
  expect(["a", "b", "c"].map((digest) => tokens.get(digest, now)?.id)).toEqual(["a", undefined, "c"]);
});

test("holds no more than its size, however many tokens come", () => {
  const tokens = filled(
    10,
    Array.from({ length: 1000 }, (_, index) => `${index}`),
  );
  expect(tokens.size).toBe(10);
});

test("forgets an entry at the moment it expires", () => {
  const tokens = filled(2, ["a"]);
  expect(tokens.get("a", { nowMs: 999, ...SAME })).toEqual(principal("a"));
  expect(tokens.get("a", { nowMs: 1000, ...SAME })).toBeUndefined();
  expect(tokens.size).toBe(0);
});

test("forgets what older keys verified", () => {
  const tokens = filled(2, ["a"]);
  expect(tokens.get("a", { ...now, keyGeneration: 2 })).toBeUndefined();
  expect(tokens.size).toBe(0);
});

test("forgets what was verified when another claim named groups", () => {
  const tokens = filled(2, ["a"]);
  expect(tokens.get("a", { ...now, groupsClaim: "teams" })).toBeUndefined();
  expect(tokens.size).toBe(0);
});
