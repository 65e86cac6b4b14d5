import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HandlerDescription, HandlerProblem } from "../../../../src/handlers/handler-description.ts";
import { HandlerFiles } from "./handler-files.ts";

const TYPESCRIPT = `
import type { CallContext, ToolResult, ContentBlock } from "owlclaw";
enum Level { Low = "low", High = "high" }
const LIMIT = 25;
interface Options {
  /** Where to look. */
  path: string;
  /** How deep. @default 3 */
  depth?: number;
}
interface Node { name: string; children?: Node[] }

/** No parameters. */
export function nothing(): void {}
/** One object. */
export function object(options: Options): void {}
/** One object, taken apart. */
export function destructured({ path, depth = 7 }: Options): void {}
/** An optional object without required fields. */
export function optionalObject(options: { deep?: boolean } = {}): void {}
/** An optional object with required fields. */
export function halfOptional(options?: { deep: boolean }): void {}
/** One value. */
export function one(name: string): void {}
/** A record. */
export function record(values: Record<string, number>): void {}
/** A union of objects. */
export function union(shape: { kind: "a" } | { kind: "b" }): void {}
/** A list. */
export function list(values: string[]): void {}
/** Several. */
export function several(first: string, second: number, third?: boolean): void {}
/** Defaults. */
export function defaults(
  a = 5, b = "x", c = -1.5, d = [1, 2], e = { deep: true }, f = Level.High, g = LIMIT, h = Date.now(), i: string | null = null,
): void {}
/** Rest. */
export function rest(first: string, ...others: number[]): void {}
/** A tuple for the rest. */
export function restTuple(...pair: [string, number]): void {}
/** Recursive root. */
export function recursive(node: Node): void {}
/** With context. */
export function withContext(name: string, context: CallContext): void {}
/** An object and the context. */
export async function objectAndContext({ path }: Options, context?: CallContext): Promise<void> {}
/** The context alone. */
export function contextOnly(context: CallContext): void {}
/** Generic. */
export function generic<T extends { id: number }>(items: T[]): T { return items[0]!; }
/** Beside others. @param where the place */
export function besideOthers({ path }: Options, count: number): void {}
/** Arrow. */
export const arrow = async (name: string): Promise<number> => name.length;
/** Function expression. */
export const expression = function (name: string): string { return name; };
type Handler = (input: { id: string }) => Promise<boolean>;
/** Typed by its variable. */
export const typed: Handler = async ({ id }) => id === "";
/** This parameter. */
export function withThis(this: void, name: string): void {}

/** Inferred. */
export function inferred(id: string) { return { id, tags: ["a"], nested: { ok: true } }; }
/** Promise. @returns The length of it. */
export async function promise(): Promise<number> { return 1; }
/** Maybe. */
export function maybe(): { id: string } | undefined { return undefined; }
/** Holes. */
export function holes(): { list: (string | undefined)[]; gone?: string } { return { list: [] }; }
/** Date out. */
export function dateOut(): Date { return new Date(); }
/** Recursive out. */
export function recursiveOut(): Node { return { name: "" }; }
/** Anything. */
export function anything(): any { return 1; }
/** Whole result. */
export function whole(): ToolResult { return { content: [] }; }
/** Blocks. */
export async function blocks(): Promise<ContentBlock[]> { return []; }
/** Throws. */
export function throws(): never { throw new Error("x"); }
/** Generator. */
export function* generator(steps: number): Generator<string, { done: boolean }> { yield "a"; return { done: true }; }
/** Async generator. */
export async function* asyncGenerator() { yield 1; return "end"; }

export function undocumented(name: string): void {}
/** A class is no function. */
export class Service {}
/** A value is no function. */
export const value = 5;
/** Not exported. */
function inner(): void {}
/** Hidden. @hidden */
export function hidden(map: Map<string, string>): void {}
/** The default. */
export default function standard(name: string): void {}
`;

const STRING = { type: "string" };
const NUMBER = { type: "number" };
const BOOLEAN = { type: "boolean" };
const NODE = {
  type: "object",
  properties: { name: STRING, children: { type: "array", items: { $ref: "#/$defs/Node" } } },
  required: ["name"],
};

function input(properties: Record<string, unknown>, required: readonly string[] = []): object {
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}), additionalProperties: false };
}

function positional(...parameters: string[]): object {
  return { style: "positional", parameters };
}

let files: HandlerFiles;
let handlers: ReadonlyMap<string, HandlerDescription>;
let problems: readonly HandlerProblem[];

beforeAll(async () => {
  files = await HandlerFiles.make({ "all.ts": TYPESCRIPT });
  const [described] = await files.describe("all.ts");
  handlers = new Map(described?.handlers.map((handler) => [handler.name, handler]));
  problems = described?.problems ?? [];
});
afterAll(() => files.remove());

describe("[004-R4.4] [004-R14.1] parameters as the input of a tool", () => {
  const path = { type: "string", description: "Where to look." };
  const options = input({ path, depth: { type: "number", description: "How deep.", default: 3 } }, ["path"]);
  // A default in the function itself is nearer than one in the type's doc comment.
  const deeper = input({ path, depth: { type: "number", description: "How deep.", default: 7 } }, ["path"]);
  test.each([
    ["nothing", input({}), positional()],
    ["object", options, { style: "object", parameters: ["path", "depth"] }],
    ["destructured", deeper, { style: "object", parameters: ["path", "depth"] }],
    ["optionalObject", input({ deep: BOOLEAN }), { style: "object", parameters: ["deep"] }],
    ["halfOptional", input({ options: input({ deep: BOOLEAN }, ["deep"]) }), positional("options")],
    ["one", input({ name: STRING }, ["name"]), positional("name")],
    ["record", input({ values: { type: "object", additionalProperties: NUMBER } }, ["values"]), positional("values")],
    [
      "union",
      input(
        {
          shape: {
            oneOf: [
              input({ kind: { type: "string", const: "a" } }, ["kind"]),
              input({ kind: { type: "string", const: "b" } }, ["kind"]),
            ],
          },
        },
        ["shape"],
      ),
      positional("shape"),
    ],
    ["list", input({ values: { type: "array", items: STRING } }, ["values"]), positional("values")],
    [
      "several",
      input({ first: STRING, second: NUMBER, third: BOOLEAN }, ["first", "second"]),
      positional("first", "second", "third"),
    ],
    [
      "defaults",
      input({
        a: { type: "number", default: 5 },
        b: { type: "string", default: "x" },
        c: { type: "number", default: -1.5 },
        d: { type: "array", items: NUMBER, default: [1, 2] },
        e: {
          type: "object",
          properties: { deep: BOOLEAN },
          required: ["deep"],
          additionalProperties: false,
          default: { deep: true },
        },
        f: { type: "string", enum: ["low", "high"], default: "high" },
        g: { type: "number", default: 25 },
        h: NUMBER,
        i: { anyOf: [STRING, { type: "null" }], default: null },
      }),
      positional("a", "b", "c", "d", "e", "f", "g", "h", "i"),
    ],
    [
      "rest",
      input({ first: STRING, others: { type: "array", items: NUMBER } }, ["first"]),
      { ...positional("first", "others"), rest: true },
    ],
    [
      "restTuple",
      input({ pair: { type: "array", prefixItems: [STRING, NUMBER], maxItems: 2, minItems: 2 } }, ["pair"]),
      { ...positional("pair"), rest: true },
    ],
    [
      "recursive",
      {
        ...input({ name: STRING, children: { type: "array", items: { $ref: "#/$defs/Node" } } }, ["name"]),
        $defs: { Node: { ...NODE, additionalProperties: false } },
      },
      { style: "object", parameters: ["name", "children"] },
    ],
    ["withContext", input({ name: STRING }, ["name"]), { ...positional("name"), context: 1 }],
    ["objectAndContext", options, { style: "object", parameters: ["path", "depth"], context: 1 }],
    ["contextOnly", input({}), { ...positional(), context: 0 }],
    [
      "generic",
      input({ items: { type: "array", items: input({ id: NUMBER }, ["id"]) } }, ["items"]),
      positional("items"),
    ],
    [
      "besideOthers",
      input({ where: { ...options, description: "the place" }, count: NUMBER }, ["where", "count"]),
      positional("where", "count"),
    ],
    ["arrow", input({ name: STRING }, ["name"]), positional("name")],
    ["expression", input({ name: STRING }, ["name"]), positional("name")],
    ["typed", input({ id: STRING }, ["id"]), { style: "object", parameters: ["id"] }],
    ["withThis", input({ name: STRING }, ["name"]), positional("name")],
    ["standard", input({ name: STRING }, ["name"]), positional("name")],
  ])("%s", (name, inputSchema, call) => {
    expect(problems.filter(({ message }) => message.startsWith(`${name}:`))).toEqual([]);
    expect(handlers.get(name)).toMatchObject({ call });
    expect(handlers.get(name)?.inputSchema).toEqual(inputSchema);
    expect(handlers.get(name)?.call).toEqual(call);
  });
});

describe("[004-R14.1] the return type as the output of a tool", () => {
  const id = { type: "object", properties: { id: STRING }, required: ["id"] };
  test.each([
    ["nothing", undefined],
    ["objectAndContext", undefined],
    [
      "inferred",
      {
        type: "object",
        properties: {
          id: STRING,
          tags: { type: "array", items: STRING },
          nested: { type: "object", properties: { ok: BOOLEAN }, required: ["ok"] },
        },
        required: ["id", "tags", "nested"],
      },
    ],
    ["promise", { type: "number", description: "The length of it." }],
    ["maybe", { anyOf: [id, { type: "null" }] }],
    [
      "holes",
      {
        type: "object",
        properties: { list: { type: "array", items: { anyOf: [STRING, { type: "null" }] } }, gone: STRING },
        required: ["list"],
      },
    ],
    ["dateOut", { type: "string", format: "date-time" }],
    ["recursiveOut", { $ref: "#/$defs/Node", $defs: { Node: NODE } }],
    ["anything", undefined],
    ["whole", undefined],
    ["blocks", undefined],
    ["throws", undefined],
    ["generator", { type: "object", properties: { done: BOOLEAN }, required: ["done"] }],
    ["asyncGenerator", STRING],
  ])("%s", (name, outputSchema) => {
    expect(problems.filter(({ message }) => message.startsWith(`${name}:`))).toEqual([]);
    expect(handlers.get(name)).toBeDefined();
    expect(handlers.get(name)?.outputSchema).toEqual(outputSchema);
  });

  test("what yields is a generator", () => {
    const generators = [...handlers.values()].filter(({ isGenerator }) => isGenerator).map(({ name }) => name);
    expect(generators).toEqual(["generator", "asyncGenerator"]);
  });
});

test("functions without a doc comment, hidden ones, classes and values are no tools", () => {
  for (const name of ["undocumented", "hidden", "Service", "value", "inner"]) expect(handlers.has(name)).toBe(false);
  expect(problems).toEqual([]);
});

test("a default export is called by its function's name", () => {
  expect(handlers.get("standard")).toMatchObject({ name: "standard", exportName: "default" });
});
