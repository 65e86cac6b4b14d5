import { expect, test } from "vitest";
import { chooseEvictions, type SandboxSize } from "../../../src/sandbox/capacity.ts";

const WIDE = {
  maxPerPrincipal: 100,
  maxTotal: 100,
  maxTotalMemoryMb: 1_000_000,
  maxTotalDiskBytes: 1e15,
  evictsIdle: true,
};
const ADA = { ownerId: "ada", flavor: "small", diskBytes: 10 } as const;

function occupant(name: string, parts: Partial<SandboxSize> = {}): SandboxSize & { readonly name: string } {
  return { name, ownerId: "ada", flavor: "small", diskBytes: 10, isIdle: true, lastUsedAtMs: 0, ...parts };
}

function leaving(
  occupants: readonly (SandboxSize & { readonly name: string })[],
  limits: Partial<typeof WIDE>,
  flavor: SandboxSize["flavor"] = "small",
): string[] {
  return chooseEvictions(occupants, { ...ADA, flavor }, { ...WIDE, ...limits }).map(({ occupant: { name } }) => name);
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

test("at the limit of all, an idle one of one's own leaves before any other", () => {
  const occupants = [occupant("mine", { lastUsedAtMs: 2 }), occupant("eve's", { ownerId: "eve", lastUsedAtMs: 1 })];
  expect(leaving(occupants, { maxTotal: 2 })).toEqual(["mine"]);
});

test("at the limit of all, the least recently used of the owner with the most leaves", () => {
  const occupants = [
    occupant("bob's", { ownerId: "bob", lastUsedAtMs: 1 }),
    occupant("eve's second", { ownerId: "eve", lastUsedAtMs: 3 }),
    occupant("eve's first", { ownerId: "eve", lastUsedAtMs: 2 }),
  ];
  expect(leaving(occupants, { maxTotal: 3 })).toEqual(["eve's first"]);
});

test("an owner with as few as the requester loses none to it", () => {
  const occupants = [occupant("mine", { isIdle: false }), occupant("bob's", { ownerId: "bob" })];
  expect(() => leaving(occupants, { maxTotal: 2 })).toThrow(expect.objectContaining({ kind: "resource_limit" }));
});

test("an owner with less than the requester is going to have loses none to it, whatever of its own leaves first", () => {
  const occupants = [
    occupant("mine", { flavor: "medium", lastUsedAtMs: 3 }),
    occupant("bob's", { ownerId: "bob", lastUsedAtMs: 1 }),
    occupant("eve's", { ownerId: "eve", lastUsedAtMs: 2 }),
  ];
  expect(() => leaving(occupants, { maxTotalMemoryMb: 4 * 1024 }, "large")).toThrow(
    expect.objectContaining({ kind: "resource_limit" }),
  );
});

test("at the limit of memory, the owner with the most memory counts", () => {
  const occupants = [
    occupant("bob's", { ownerId: "bob" }),
    occupant("bob's other", { ownerId: "bob" }),
    occupant("eve's", { ownerId: "eve", flavor: "large", lastUsedAtMs: 1 }),
  ];
  expect(leaving(occupants, { maxTotalMemoryMb: 6 * 1024 })).toEqual(["eve's"]);
});

test("as many leave as the memory needs", () => {
  const occupants = [
    occupant("a", { lastUsedAtMs: 1 }),
    occupant("b", { lastUsedAtMs: 2 }),
    occupant("c", { lastUsedAtMs: 3 }),
  ];
  expect(chooseEvictions(occupants, { ...ADA, flavor: "medium" }, { ...WIDE, maxTotalMemoryMb: 3072 })).toMatchObject([
    { occupant: { name: "a" } },
    { occupant: { name: "b" } },
  ]);
});

test("sandboxes whose workspaces do not lie on the disk make no room on it", () => {
  const occupants = [occupant("volume", { diskBytes: 0 }), occupant("image", { lastUsedAtMs: 1 })];
  expect(leaving(occupants, { maxTotalDiskBytes: 19 })).toEqual(["image"]);
  expect(chooseEvictions(occupants, { ...ADA, diskBytes: 0 }, { ...WIDE, maxTotalDiskBytes: 0 })).toEqual([]);
});

test.each([
  [{ maxPerPrincipal: 1 }, "sandbox.maxPerPrincipal"],
  [{ maxTotal: 1 }, "sandbox.maxTotal"],
  [{ maxTotalMemoryMb: 1024 }, "sandbox.maxTotalMemoryMb"],
  [{ maxTotalDiskBytes: 19 }, "sandbox.diskReserveMb"],
])("busy ones never leave: %j refuses", (limits, key) => {
  expect(() => leaving([occupant("busy", { isIdle: false })], limits)).toThrow(
    expect.objectContaining({ kind: "resource_limit", facts: expect.objectContaining({ limit: key }) as unknown }),
  );
});

test.each([{ maxPerPrincipal: 1 }, { maxTotal: 1 }, { maxTotalMemoryMb: 1024 }, { maxTotalDiskBytes: 19 }])(
  "nobody leaves where idle ones may stay: %j refuses",
  (limits) => {
    const refusal = expect.objectContaining({ kind: "resource_limit", message: expect.not.stringContaining("busy") });
    expect(() => leaving([occupant("idle")], { ...limits, evictsIdle: false })).toThrow(refusal);
    expect(leaving([], { ...limits, evictsIdle: false })).toEqual([]);
  },
);
