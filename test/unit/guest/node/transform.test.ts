import vm from "node:vm";
import { expect, test } from "vitest";
import { toCell } from "../../../../guest/node/transform.ts";

/** Runs cells one after the other in one fresh global scope, as the driver does. */
async function run(...cells: string[]): Promise<unknown> {
  const context = vm.createContext({ module: { exports: {} }, load: (name: string) => Promise.resolve({ name }) });
  let value: unknown;
  for (const code of cells) {
    const { script } = toCell(code);
    value = await vm.runInContext(script, context);
  }
  return value;
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
])("%j gives %j", async (cells, value) => {
  expect(await run(...cells)).toBe(value);
});

test.each([
  ["1", true],
  ["const a = 1", false],
  ["if (true) 1", false],
  ["await 1", true],
  ["'use strict'", false],
  ["", false],
])("%j has a value: %s", (code, hasValue) => {
  expect(toCell(code).hasValue).toBe(hasValue);
});

test("stays a plain script where nothing is awaited", () => {
  expect(toCell("const a = 1; let b = () => { let c; }; async function f() { await 1 }")).toMatchObject({
    isAsync: false,
    script: "var   a = 1; var b = () => { let c; }; async function f() { await 1 }",
  });
});

test("every line stays in its place", () => {
  const code = 'import a, {\n  b,\n} from "x";\nconst c = 1,\n  d = 2;\n\nclass E {\n}\nawait c';
  const { script } = toCell(code);
  expect(script.split("\n").findIndex((line) => line.includes("class E"))).toBe(6);
  expect(script.split("\n").findIndex((line) => line.includes("await c"))).toBe(8);
});
