import { afterAll, beforeAll, expect, test } from "vitest";
import { rpc } from "./http-client.ts";
import { type MeasuredServer, startMeasured } from "./loop-delay.ts";
import { MANY_CALLS } from "./server.ts";

/** Arguments that are made to keep the checks of a handler or a rule busy: the server does nothing else meanwhile. */
const HANDLERS = `
import { defineHandler, defineResource } from "owlclaw";

type Step = { kind: "add"; next: Step | null } | { kind: "mul"; next: Step | null } | { kind: "end"; done: true };

/** Takes a list without duplicates. */
export function distinct(input: {
  /** @uniqueItems */
  items: unknown[];
}): number {
  return input.items.length;
}

/** Takes a chain of steps. */
export function chain(input: { step: Step }): string {
  return input.step.kind;
}

/** Takes any list. */
export function anything(input: { items: unknown[]; also?: number }): number {
  return input.items.length;
}

/** Takes rows. */
export function rows(input: { rows: { name: string; size: number }[] }): number {
  return input.rows.length;
}

/** Takes a text. */
export function text(input: { text: string; search?: string }): number {
  return input.text.length;
}

/** Takes a text of a certain form, which is quick to check. */
export function slug(input: {
  /** @pattern ^[a-z0-9]+(?:-[a-z0-9]+)*$ */
  text: string;
}): string {
  return input.text;
}

/** Takes a text of a certain form, which is slow to check. */
export function slowSlug(input: {
  /** @pattern a*a*a*b */
  text: string;
}): string {
  return input.text;
}

/** Takes a text of a certain form, which can take for ever to check. */
export function unsafe(input: {
  /** @pattern ^(a+)+$ */
  text: string;
}): string {
  return input.text;
}

export const unsafeNames = defineHandler({
  name: "unsafe_names",
  description: "Takes members with names of a certain form",
  input: { type: "object", properties: { enum: { patternProperties: { "^(a|a)*$": {} } } } },
  run: () => 1,
});

const branch = (end: number) => ({ properties: { n: { $recursiveRef: "#" }, e: { const: end } }, required: ["n"] });
export const recursive = defineHandler({
  name: "recursive",
  description: "Takes a union of itself",
  input: { type: "object", anyOf: [branch(1), branch(2), { properties: { end: { const: 5 } }, required: ["end"] }] },
  run: () => 1,
});

const names = Array.from({ length: 500 }, (_, at) => "k" + at);
const numbers = Array.from({ length: 20 }, (_, at) => ({ const: at }));
export const dependent = defineHandler({
  name: "dependent",
  description: "Takes members that ask for others",
  input: {
    type: "object",
    dependentSchemas: Object.fromEntries(
      names.map((name) => [name, { properties: { list: { type: "array", items: { anyOf: numbers } } } }]),
    ),
  },
  run: () => 1,
});

export const parts = defineResource({
  uri: "parts://{a}-{b}-{c}-{d}",
  name: "parts",
  read: () => "none",
});
`;

const RULES = [
  {
    id: "pairs",
    when: 'tool == "anything" && has(args.also) && args.items.exists(a, args.items.exists(b, a == b && a == -1))',
    effect: "deny",
  },
  { id: "search", when: 'tool == "text" && has(args.search) && args.text.contains(args.search)', effect: "deny" },
];

/** Required are 50 ms. The rest is for a machine that is slow, and busy with other tests. */
const LONGEST_DELAY_MS = 400;

let server: MeasuredServer;

beforeAll(async () => {
  server = await startMeasured(HANDLERS, { governance: { defaults: MANY_CALLS, rules: RULES } });
});

afterAll(() => server.stop());

async function attack(name: string, args: object): Promise<string> {
  await server.longestDelayMs();
  const { text } = await rpc(server.origin, "tools/call", { name, arguments: args });
  const delayMs = await server.longestDelayMs();
  expect(delayMs).toBeLessThan(LONGEST_DELAY_MS);
  return text;
}

function times(count: number, make: (at: number) => unknown): unknown[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

function nested(depth: number): unknown {
  let value: unknown = { end: 6 };
  for (let count = 0; count < depth; count += 1) value = { n: value, e: 3 };
  return value;
}

function chained(depth: number): unknown {
  let step: unknown = { kind: "end", done: false };
  for (let count = 0; count < depth; count += 1) step = { kind: "mul", next: step };
  return step;
}

test.each([
  [
    "20,000 objects where no two may be equal",
    "distinct",
    { items: times(20_000, (at) => ({ at })) },
    /"text":"20000"|takes longer/,
  ],
  ["a million empty lists", "anything", { items: times(1_000_000, () => []) }, "more than 50000 values"],
  ["two million numbers", "anything", { items: times(2_000_000, () => 1) }, "more than 50000 values"],
  ["45,000 empty lists", "anything", { items: times(45_000, () => []) }, /"text":"45000"|rules took longer/],
  [
    "15,000 rows that are as they should be",
    "rows",
    { rows: times(15_000, (at) => ({ name: "a", size: at })) },
    /"text":"15000"|takes longer/,
  ],
  ["45,000 rows that lack everything", "rows", { rows: times(45_000, () => ({})) }, /invalid_params|takes longer/],
  ["a chain through a recursive union", "recursive", { n: nested(22) }, /invalid_params|takes longer/],
  ["a chain through a union of itself", "chain", { step: chained(60) }, "invalid arguments"],
  ["a text of four megabytes", "text", { text: "a".repeat(4_000_000) }, "4000000"],
  [
    "rows of digits that are no number too large",
    "text",
    { text: `${"1".repeat(308)} `.repeat(12_000) },
    /3708000|took longer|takes longer/,
  ],
  [
    "a long text for a pattern with a separator",
    "slug",
    { text: `${"a-".repeat(500_000)}!` },
    /must match pattern|takes longer/,
  ],
  ["a long text for a pattern with three repetitions", "slowSlug", { text: "a".repeat(100_000) }, "takes longer than"],
  [
    "10,000 items for a rule with two loops",
    "anything",
    { items: times(10_000, () => 1), also: 1 },
    "rules took longer",
  ],
  [
    "two texts of which a rule searches one in the other",
    "text",
    { text: "a".repeat(2_000_000), search: `${"a".repeat(500_000)}b${"a".repeat(500_000)}` },
    "too long to be searched",
  ],
])("%s do not block the event loop", async (_what, name, args, expected) => {
  expect(await attack(name, args)).toMatch(expected);
});

test("few values for a large schema do not block the event loop, once it is compiled", async () => {
  const asked = Array.from({ length: 490 }, (_, at): [string, number] => [`k${at}`, 1]);
  const args = { ...Object.fromEntries(asked), list: times(500, () => -1) };
  for (const first of [{}, args]) await rpc(server.origin, "tools/call", { name: "dependent", arguments: first });
  expect(await attack("dependent", args)).toMatch(/invalid_params|takes longer/);
});

test("lists of an ordinary size are accepted", async () => {
  expect(await attack("distinct", { items: times(500, (at) => ({ at })) })).toContain('"text":"500"');
  expect(await attack("rows", { rows: times(2000, (at) => ({ name: "a", size: at })) })).toContain('"text":"2000"');
});

test("a long URI for a template with several variables does not block the event loop", async () => {
  await server.longestDelayMs();
  const { json } = await rpc(server.origin, "resources/read", { uri: `parts://${"-".repeat(100_000)}/` });
  expect(json.error.data.kind).toBe("resource_not_found");
  expect(await server.longestDelayMs()).toBeLessThan(LONGEST_DELAY_MS);
});

test.each(["unsafe", "unsafe_names"])("the handler %s is not served: its pattern could take for ever", async (name) => {
  const { json } = await rpc(server.origin, "tools/list");
  expect(json.result.tools.map((tool: { readonly name: string }) => tool.name)).not.toContain(name);
  expect(server.log()).toMatch(/cannot be used.*can take exponential time/);
});
