import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HandlerDescription, HandlerProblem } from "../../../../src/handlers/handler-description.ts";
import { HandlerFiles } from "./handler-files.ts";

const SOURCE = String.raw`
/** The head of the file. */

/**
 * Converts an amount. Uses {@link Rate}.
 *
 * The rate is that of today.
 * @remarks Weekends have the rate of Friday.
 * @param amount how much @minimum 0 @maximum 1000000
 * @param to - the currency to convert to
 * @maxLength to 3
 * @pattern to ^[A-Z]{3}$
 * @default digits 2
 * @integer digits
 * @returns the amount there
 * @example { "amount": 5, "to": "EUR" }
 * @example
 * ${"```"}ts
 * await convert({ amount: -1.5, to: 'USD' });
 * ${"```"}
 * @example convert(many, words)
 * @title Convert money
 * @version 2.1.0
 * @readonly
 * @destructive false
 * @idempotent
 * @openWorld
 * @cost fixed=1 perSecond=0.01 max=5
 * @skill finance/rates
 * @confirm client
 * @timeout 1.5s
 * @scope network
 * @see somewhere
 */
export function convert(amount: number, to: string, digits?: number): number { return amount; }

/** An address. */
interface Address { street: string }
interface Order {
  /** The number of it. @minimum 1 */
  id: number;
  /**
   * Who.
   * @format email
   * @minLength 3
   * @example a@b.example
   */
  email: string;
  /** @minItems 1 @maxItems 9 @uniqueItems */
  tags: string[];
  /** @exclusiveMinimum 0 @exclusiveMaximum 10 @multipleOf 0.5 */
  weight: number | null;
  /** @title Shown as @deprecated use email */
  mail?: string;
  /** @default {"a": [1]} */
  more?: Record<string, number[]>;
  /** @default plain text */
  note?: string;
  home: Address;
  /** Where it goes. */
  target: Address;
}
/**
 * Takes an order.
 * @param order.home The home.
 * @cost 0.5
 * @confirm
 * @deprecated use another
 */
export function order(order: Order): void {}

/** Bad tags. @timeout soon @cost cheap @scope everywhere @skill rates @confirm maybe @readonly perhaps */
export function badTags(): void {}
/**
 * Bad constraints.
 * @param a @minimum low
 * @param b @minimum 1
 * @param c @pattern (
 * @param d @format zip
 * @param e @default 5
 */
export function badConstraints(a: number, b: string, c: string, d: string, e: boolean): void {}
/** @param a only a parameter */
export function noText(a: string): void {}
/** Inline. @readOnly */
export function inline(/** how many @minimum 1 */ count: number, /** @maxLength 3 */ code = "abc"): void {}
/**
 * Strays.
 * @minimum missing 1
 * @maximum 5
 * @param old gone @minLength 3
 * @Timeout 5s
 * @minlength a 3
 */
export function strays(a: string): void {}
`;

let files: HandlerFiles;
let handlers: ReadonlyMap<string, HandlerDescription>;
let problems: readonly HandlerProblem[];

beforeAll(async () => {
  files = await HandlerFiles.make({ "all.ts": SOURCE });
  const [described] = await files.describe("all.ts");
  handlers = new Map(described?.handlers.map((handler) => [handler.name, handler]));
  problems = described?.problems ?? [];
});
afterAll(() => files.remove());

describe("[004-R4.5] [004-R14.3] the doc comment of a function", () => {
  test("gives the description, the texts and constraints of parameters, and all that the tags say", () => {
    expect(handlers.get("convert")).toEqual({
      name: "convert",
      exportName: "convert",
      description: "Converts an amount. Uses Rate.\n\nThe rate is that of today.\n\nWeekends have the rate of Friday.",
      title: "Convert money",
      version: "2.1.0",
      inputSchema: {
        type: "object",
        properties: {
          amount: { type: "number", description: "how much", minimum: 0, maximum: 1_000_000 },
          to: { type: "string", description: "the currency to convert to", maxLength: 3, pattern: "^[A-Z]{3}$" },
          digits: { type: "integer", default: 2 },
        },
        required: ["amount", "to"],
        additionalProperties: false,
      },
      outputSchema: { type: "number", description: "the amount there" },
      call: { style: "positional", parameters: ["amount", "to", "digits"] },
      dates: [],
      effect: { readOnly: true, destructive: false, idempotent: true, openWorld: true },
      scope: "network",
      timeoutMs: 1500,
      cost: { fixed: 1, perSecond: 0.01, max: 5 },
      confirm: "client",
      skill: "finance/rates",
      examples: [{ amount: 5, to: "EUR" }, { amount: -1.5, to: "USD" }, "convert(many, words)"],
      line: SOURCE.split("\n").findIndex((line) => line.startsWith("export function convert")) + 1,
      isGenerator: false,
    });
  });

  test("a deprecated tool says so to the model", () => {
    expect(handlers.get("order")).toMatchObject({
      description: "Takes an order.\n\nDeprecated: use another",
      cost: 0.5,
      confirm: "operator",
    });
  });
});

test("[004-R14.3] the doc comments of fields give texts and constraints", () => {
  const address = { type: "object", properties: { street: { type: "string" } }, required: ["street"] };
  expect(handlers.get("order")?.inputSchema["properties"]).toEqual({
    id: { type: "number", description: "The number of it.", minimum: 1 },
    email: { type: "string", description: "Who.", format: "email", minLength: 3, examples: ["a@b.example"] },
    tags: { type: "array", items: { type: "string" }, minItems: 1, maxItems: 9, uniqueItems: true },
    weight: {
      anyOf: [{ type: "number" }, { type: "null" }],
      exclusiveMinimum: 0,
      exclusiveMaximum: 10,
      multipleOf: 0.5,
    },
    mail: { type: "string", title: "Shown as", deprecated: true },
    more: {
      type: "object",
      additionalProperties: { type: "array", items: { type: "number" } },
      default: { a: [1] },
    },
    note: { type: "string", default: "plain text" },
    home: { ...address, description: "The home.", additionalProperties: false },
    target: { ...address, description: "Where it goes.", additionalProperties: false },
  });
});

test("a tag that cannot be read is a problem of its function alone, with what to write", () => {
  const of = (name: string): readonly string[] =>
    problems.filter(({ message }) => message.startsWith(`${name}:`)).map(({ message, fix }) => `${message} -> ${fix}`);
  expect(of("badTags")).toEqual([
    "badTags: @readonly perhaps cannot be read -> write @readonly, or @readonly false",
    "badTags: @scope everywhere cannot be read -> write @scope workspace, @scope network or @scope exec",
    "badTags: @timeout soon cannot be read -> write @timeout 30s, 500ms, 2m or 1h",
    "badTags: @cost cheap cannot be read -> write @cost 0.5, or @cost fixed=1 perSecond=0.01 perEgressMb=0.1 max=5",
    "badTags: @confirm maybe cannot be read -> write @confirm, @confirm operator or @confirm client",
    "badTags: @skill rates cannot be read -> write @skill category/name",
  ]);
  expect(of("badConstraints").map((text) => text.replace(/ ->.*/, ""))).toEqual([
    'badConstraints: @minimum of a: "low" is not a number',
    "badConstraints: @minimum of b: it is for a number, and the type is string",
    'badConstraints: @pattern of c: "(" is not a regular expression',
    expect.stringContaining('badConstraints: @format of d: "zip" is not one of date-time, date'),
    'badConstraints: @default of e: "5" does not fit the type',
  ]);
  expect(of("noText")).toEqual([
    "noText: its doc comment has no text, which is the tool's description -> say what it does in the first line, or add the tag @hidden",
  ]);
  expect([...handlers.keys()]).toEqual(["convert", "order", "inline"]);
});

test("the doc comment of a parameter gives its text and constraints", () => {
  expect(handlers.get("inline")).toMatchObject({
    effect: { readOnly: true },
    inputSchema: {
      properties: {
        count: { type: "number", description: "how many", minimum: 1 },
        code: { type: "string", default: "abc", maxLength: 3 },
      },
    },
  });
});

test("a tag that applies to no parameter is a problem: its limit would not hold", () => {
  expect(
    problems.filter(({ message }) => message.startsWith("strays:")).map(({ message, fix }) => `${message} -> ${fix}`),
  ).toEqual([
    "strays: @minimum missing 1 names no parameter -> write @minimum NAME VALUE, or put it on the line of its @param; the names are a",
    "strays: @maximum 5 names no parameter -> write @maximum NAME VALUE, or put it on the line of its @param; the names are a",
    "strays: @minLength on the line of @param old names no parameter -> write @minLength NAME VALUE, or put it on the line of its @param; the names are a",
    "strays: @Timeout is not a tag -> write @timeout",
    "strays: @minlength is not a tag -> write @minLength",
  ]);
});
