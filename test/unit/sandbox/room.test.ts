import { expect, test } from "vitest";
import { makeRoom, type Occupant } from "../../../src/sandbox/room.ts";

const WIDE = { maxPerPrincipal: 100, maxTotal: 100, maxTotalMemoryMb: 1_000_000, evictsIdle: true };
const ADA = { ownerId: "ada", flavor: "small" } as const;

function occupant(name: string, parts: Partial<Occupant> = {}): Occupant & { readonly name: string } {
  return { name, ownerId: "ada", flavor: "small", isIdle: true, lastUsedAtMs: 0, ...parts };
}

function leaving(occupants: readonly (Occupant & { readonly name: string })[], limits: Partial<typeof WIDE>): string[] {
  return makeRoom(occupants, ADA, { ...WIDE, ...limits }).map(({ name }) => name);
}

test("nobody leaves while there is room", () => {
  expect(leaving([occupant("a"), occupant("b")], { maxTotal: 3 })).toEqual([]);
});

test("the least recently used of one's own leaves at one's own limit", () => {
  const occupants = [
    occupant("new", { lastUsedAtMs: 3 }),
    occupant("old", { lastUsedAtMs: 1 }),
    occupant("eve's", { ownerId: "eve" }),
  ];
  expect(leaving(occupants, { maxPerPrincipal: 2 })).toEqual(["old"]);
});

test("at the limit of all, the least recently used of anybody leaves", () => {
  const occupants = [occupant("mine", { lastUsedAtMs: 2 }), occupant("eve's", { ownerId: "eve", lastUsedAtMs: 1 })];
  expect(leaving(occupants, { maxTotal: 2 })).toEqual(["eve's"]);
});

test("as many leave as the memory needs", () => {
  const occupants = [
    occupant("a", { lastUsedAtMs: 1 }),
    occupant("b", { lastUsedAtMs: 2 }),
    occupant("c", { lastUsedAtMs: 3 }),
  ];
  expect(makeRoom(occupants, { ownerId: "ada", flavor: "medium" }, { ...WIDE, maxTotalMemoryMb: 3072 })).toMatchObject([
    { name: "a" },
    { name: "b" },
  ]);
});

test.each([
  [{ maxPerPrincipal: 1 }, "sandbox.maxPerPrincipal"],
  [{ maxTotal: 1 }, "sandbox.maxTotal"],
  [{ maxTotalMemoryMb: 1024 }, "sandbox.maxTotalMemoryMb"],
])("busy ones never leave: %j refuses", (limits, key) => {
  expect(() => leaving([occupant("busy", { isIdle: false })], limits)).toThrow(
    expect.objectContaining({ kind: "resource_limit", facts: expect.objectContaining({ limit: key }) as unknown }),
  );
});

test.each([{ maxPerPrincipal: 1 }, { maxTotal: 1 }, { maxTotalMemoryMb: 1024 }])(
  "nobody leaves where idle ones may stay: %j refuses",
  (limits) => {
    const refusal = expect.objectContaining({ kind: "resource_limit", message: expect.not.stringContaining("busy") });
    expect(() => leaving([occupant("idle")], { ...limits, evictsIdle: false })).toThrow(refusal);
    expect(leaving([], { ...limits, evictsIdle: false })).toEqual([]);
  },
);
