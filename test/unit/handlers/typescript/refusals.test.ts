import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FileDescription } from "../../../../src/handlers/handler-description.ts";
import { HandlerFiles } from "./handler-files.ts";

/** The type of a parameter, and words that the message and the fix must have. */
const REFUSED: readonly (readonly [type: string, message: string, fix: string])[] = [
  ["Map<string, number>", "Map<string, number>", "Record<string, V>"],
  ["ReadonlyMap<string, number>", "ReadonlyMap<string, number>", "Record<string, V>"],
  ["Set<string>", "Set<string>", "@uniqueItems"],
  ["bigint", "bigint", "BigInt(text)"],
  ["10n", "10n", "BigInt(text)"],
  ["symbol", "symbol", "write string"],
  ["() => void", "() => void", "the data"],
  ["Function", "Function", "the data"],
  ["{ run(): void }", "value.run has the type () => void", "the data"],
  ["{ deep: { list: Set<number>[] } }", "value.deep.list[] has the type Set<number>", "@uniqueItems"],
  ["Service", "Service", "an instance of a class loses its methods"],
  ["RegExp", "RegExp", "@format regex"],
  ["Uint8Array", "Uint8Array", "base64"],
  ["ArrayBuffer", "ArrayBuffer", "base64"],
  ["Promise<string>", "Promise<string>", "resolves to"],
  ["Iterable<string>", "Iterable<string>", "T[]"],
  ["Error", "Error", "{ message: string }"],
  ["Intl.NumberFormat", "NumberFormat", "an interface"],
  ["never", "never", "can exist"],
  ["undefined", "undefined", "leave it out"],
  ["{ [Symbol.iterator]: string }", "a symbol cannot name a field", "name it with text"],
  ["[...string[], number]", "after a rest element", "put the rest element last"],
  ["Grow<string>", "too many levels", "the fields that matter"],
  ["Missing", "Missing, which cannot be found", "import or declare it"],
  ["Lost", 'the module "./nowhere.ts" cannot be found', 'correct the import of "./nowhere.ts"'],
  ["Dated", "contains itself and a Date", "@format date-time"],
  ['{ at: Date; kind: "a" } | { at: string; kind: "b" }', "value.at is a Date in one member", "@format date-time"],
  ["[string, ...Date[]]", "the rest of a tuple", "an array of Date"],
];

const GIVEN = `
import type { Lost } from "./nowhere.ts";
class Service { name = ""; run(): void {} }
interface Grow<T> { value: T; next?: Grow<T[]> }
interface Dated { at: Date; next?: Dated }
`;

let files: HandlerFiles;
let described: readonly FileDescription[];

beforeAll(async () => {
  files = await HandlerFiles.make({
    "refused.ts": [
      GIVEN,
      ...REFUSED.map(
        ([type], index) => `/** Refused. */ export function refused${index}(value: ${type}, last?: 1): void {}`,
      ),
      "/** Fine. */ export function fine(name: string): void {}",
    ].join("\n"),
    "odd.ts": `
/** Overloaded. */
export function overloaded(a: string): void;
export function overloaded(a: number): void;
export function overloaded(a: unknown): void {}
/** Bad name. */
export function $dollar(a: string): void {}
/** Untyped. */
export function untyped(a, b = 5): void {}
/** Nameless. */
export function nameless({ a }: { a: string }, b: string): void {}
/** Context first. */
export function contextFirst(context: import("owlclaw").CallContext, a: string): void {}
/** Bad result. */
export function badResult(a: string): { made: Map<string, string> } { return { made: new Map() }; }
/** Nameless default. */
export default (a: string): void => {};
/** Fine. */
export const fine = (): void => {};
/** Body errors are not ours. */
export function body(a: string): number { const x: number = "no"; return nowhere(x); }
`,
    "shared.ts": "export interface Basket { id: string;\n  prices: Map<string, number> }",
    "uses.ts":
      'import type { Basket } from "./shared.ts";\n/** Uses. */\nexport function uses(basket: Basket): void {}',
    "syntax.ts": "/** Broken. */\nexport function broken(a: string {",
    "good.ts": "/** Good. */\nexport function good(a: string): void {}",
  });
  described = await files.describe("refused.ts", "odd.ts", "uses.ts", "syntax.ts", "good.ts", "absent.ts");
});
afterAll(() => files.remove());

function at(name: string): FileDescription {
  const found = described.find(({ file }) => file === files.path(name));
  if (found === undefined) throw new Error(`${name} is not described`);
  return found;
}

describe("a type that JSON cannot carry is refused with file, line, type and what to write", () => {
  test.each(REFUSED.map(([type, message, fix], index) => ({ type, message, fix, index })))(
    "$type",
    ({ message, fix, index }) => {
      const found = at("refused.ts").problems.filter((problem) => problem.message.startsWith(`refused${index}:`));
      expect(found).toEqual([
        {
          file: files.path("refused.ts"),
          line: expect.any(Number),
          column: expect.any(Number),
          message: expect.stringContaining(message),
          fix: expect.stringContaining(fix),
        },
      ]);
    },
  );

  test("the line and the column are those of the parameter", () => {
    const line = GIVEN.split("\n").length + 1;
    expect(at("refused.ts").problems.find(({ message }) => message.startsWith("refused0:"))).toMatchObject({
      line,
      column: 42,
    });
  });

  test("a type of another file is named with its place there", () => {
    expect(at("uses.ts").problems).toEqual([
      {
        file: files.path("uses.ts"),
        line: 3,
        column: 1,
        message: "uses: prices has the type Map<string, number>, which JSON cannot express (written at shared.ts:2)",
        fix: expect.any(String),
      },
    ]);
  });
});

test("a bad function leaves the others of its file alone", () => {
  expect(at("refused.ts").handlers.map(({ name }) => name)).toEqual(["fine"]);
  expect(at("odd.ts").handlers.map(({ name }) => name)).toEqual(["fine", "body"]);
});

test("functions that cannot be tools say why", () => {
  const said = at("odd.ts").problems.map(({ message, line }) => `${line} ${message}`);
  expect(said).toEqual([
    "3 overloaded: it is overloaded, and a tool has one signature",
    "7 $dollar: $dollar is no name for a tool",
    "9 untyped: the parameter a has no type",
    "11 nameless: parameter 1 is destructured beside others and has no name",
    "13 contextFirst: context is the context and must be the last parameter",
    "15 badResult: the result.made has the type Map<string, string>, which JSON cannot express",
    "17 the default export: a default export needs a name",
  ]);
});

test("a file with a syntax error says where, and the others are described", () => {
  expect(at("syntax.ts").handlers).toEqual([]);
  expect(at("syntax.ts").problems[0]).toMatchObject({
    file: files.path("syntax.ts"),
    line: 2,
    message: expect.stringMatching(/^syntax error: /),
  });
  expect(at("good.ts")).toMatchObject({ handlers: [{ name: "good" }], problems: [] });
});

test("a file that is not there is a problem of its own", () => {
  expect(at("absent.ts")).toMatchObject({ handlers: [], problems: [{ message: "the file cannot be read" }] });
});
