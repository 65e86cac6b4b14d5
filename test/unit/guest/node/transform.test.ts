import vm from "node:vm";
import { expect, test } from "vitest";
import { CellNames } from "../../../../guest/node/cell-names.ts";
import { toCell } from "../../../../guest/node/transform.ts";

const NOTHING_KNOWN = { isConstant: () => false };

/** Runs cells one after the other in one fresh global scope, as the driver does. */
async function run(...cells: string[]): Promise<unknown> {
  const context = vm.createContext(vm.constants.DONT_CONTEXTIFY);
  Object.assign(context, { module: { exports: {} } });
  const names = new CellNames(context);
  let value: unknown;
  for (const code of cells) {
    const { script, declared } = toCell(code, names);
    names.open(declared);
    try {
      value = await vm.runInContext(script, context);
    } finally {
      names.close();
    }
  }
  return value;
}

/** What a cell throws, after the cells before it. */
async function failureOf(...cells: string[]): Promise<unknown> {
  return await run(...cells).then(
    (value) => value,
    (error: unknown) => String(error),
  );
}

test.each([
  [["const a = 1", "const a = 2", "a"], 2],
  [["let a = 1\nlet b = a\n;[a, b].length"], 2],
  [["class A { v = 1 }", "class A { v = 2 }", "new A().v"], 2],
  [
    ["await 0; const { a, b: { c = 3, ...d }, ...e } = { a: 1, b: { x: 4 }, y: 5 }", "[a, c, d.x, e.y].join()"],
    "1,3,4,5",
  ],
  [["await 0; const [a, , b = 2, ...c] = [1, 0, undefined, 3, 4]", "[a, b, ...c].join()"], "1,2,3,4"],
  [["await 0; let a = 1, b, c = 3", "[a, b, c].join()"], "1,,3"],
  [["let a = 5", "await 0; let a", "a"], undefined],
  [["await 0; if (true) { var a = 1, b; }", "[a, b].join()"], "1,"],
  [["await 0; for (var i = 0, n = 3; i < n; i++);", "i + n"], 6],
  [["await 0; for (var k in { x: 1 }); for (const q of [1]) { var last = q }", "k + last"], "x1"],
  [["for await (var v of [1, 2]);", "v"], 2],
  [["function f() { return 1 }\nawait 0", "f()"], 1],
  [["f(); async function f() { await 0 }\nawait 0; function g() { return f.name }", "g()"], "f"],
  [["await 0; class A { static x = 1 }", "A.x"], 1],
  [["await (async () => 7)()"], 7],
  [["(await 8)"], 8],
  [["(await 8) // nine\n;"], 8],
  [["await 0; ({ a: 1 }).a;"], 1],
  [["const f = async () => { await 0; return 3 }", "f()"], 3],
  [["export const a = 4; export { a as b }", "a"], 4],
  [["export default class { static x = 5 }\n(1)", "module.exports.default.x"], 5],
  [["#!/usr/bin/env node\n1 + 1"], 2],
  [["'use strict'; let a = 1; a"], 1],
  [["let a = 5", "let a", "a"], undefined],
  [["const a = 1", "var a = 2; a"], 2],
  [["const a = 1", "if (true) { var a = 2 }", "a"], 2],
  [["const a = 1", "function a() { return 3 }", "a()"], 3],
  [["const a = 1; const f = () => a", "const a = 2", "f()"], 2],
  [["let n = 1; const f = () => n", "n = 7", "f()"], 7],
  [["const a = 1; const f = (a) => { a = 9; return a }; f(0) + a"], 10],
  [["const a = 1; { let a = 2; a = 3 } a"], 1],
  [["export default class Foo { static x = 6 }", "Foo.x + module.exports.default.x"], 12],
  [["export default function foo() { return 7 }", "foo() + module.exports.default()"], 14],
])("%j gives %j", async (cells, value) => {
  expect(await run(...cells)).toBe(value);
});

const CONSTANT = "TypeError: Assignment to constant variable.";

test.each([
  [["const a = 1; a = 2"], CONSTANT],
  [
    ["const a = 1; let seen = 'none'; try { a = 2 } catch (e) { seen = e.message }; seen + a"],
    "Assignment to constant variable.1",
  ],
  [["const a = 1", "a = 2"], CONSTANT],
  [["const a = 1; a += 2"], CONSTANT],
  [["const a = 1", "await 0; a++"], CONSTANT],
  [["await 0; const a = 1; [a] = [2]"], CONSTANT],
  [["const a = 1; ({ a } = { a: 2 })"], CONSTANT],
  [["const a = 1; ({ a = 3 } = {})"], CONSTANT],
  [["const a = 1; for (a of [2]);"], CONSTANT],
  [["const a = 1; a ??= 2; a"], 1],
  [["const f = () => { a = 2 }; const a = 1; f()"], CONSTANT],
  [["const a = b; const b = 1"], "ReferenceError: Cannot access 'b' before initialization"],
  [["await 0; let a = b; let b = 1"], "ReferenceError: Cannot access 'b' before initialization"],
  [["new A(); class A {}"], "ReferenceError: Cannot access 'A' before initialization"],
  [["typeof a; let a"], "ReferenceError: Cannot access 'a' before initialization"],
])("%j fails as it does in a module: %s", async (cells, outcome) => {
  expect(await failureOf(...cells)).toBe(outcome);
});

test("a cell that fails before a declaration leaves the name as it was", async () => {
  const context = vm.createContext(vm.constants.DONT_CONTEXTIFY);
  const names = new CellNames(context);
  const runCell = (code: string): unknown => {
    const { script, declared } = toCell(code, names);
    names.open(declared);
    try {
      return vm.runInContext(script, context);
    } finally {
      names.close();
    }
  };
  runCell("let a = 1");
  expect(() => runCell("null.x; let a = 2, b = 3")).toThrow(/null/);
  expect(runCell("a + typeof b")).toBe("1undefined");
});

test("an import keeps its attributes", () => {
  const { script } = toCell(
    'import d from "./d.json" with { type: "json" }; export * from "./e.json" with { type: "json" }',
    NOTHING_KNOWN,
  );
  expect(script).toContain('await import("./d.json",{with:{type:"json"}})');
  expect(script).toContain('await import("./e.json",{with:{type:"json"}})');
});

test.each([
  ["1", true],
  ["const a = 1", false],
  ["if (true) 1", false],
  ["await 1", true],
  ["'use strict'", false],
  ["", false],
])("%j has a value: %s", (code, hasValue) => {
  expect(toCell(code, NOTHING_KNOWN).hasValue).toBe(hasValue);
});

test("stays a plain script where nothing is awaited", () => {
  expect(toCell("const a = 1; let b = () => { let c; }; async function f() { await 1 }", NOTHING_KNOWN)).toMatchObject({
    isAsync: false,
    script: "var   a = 1; var b = () => { let c; }; async function f() { await 1 }",
  });
});

test("every line stays in its place", () => {
  const code = 'import a, {\n  b,\n} from "x";\nconst c = 1,\n  d = 2;\n\nclass E {\n}\nawait c';
  const { script } = toCell(code, NOTHING_KNOWN);
  expect(script.split("\n").findIndex((line) => line.includes("class E"))).toBe(6);
  expect(script.split("\n").findIndex((line) => line.includes("await c"))).toBe(8);
});
