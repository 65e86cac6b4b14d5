import { afterEach, expect, test } from "vitest";
import { HandlerFiles } from "./handler-files.ts";

let files: HandlerFiles;
afterEach(() => files.remove());

test("each file is read with its nearest tsconfig.json: paths and strictness", async () => {
  files = await HandlerFiles.make({
    "loose/tsconfig.json": '{ "compilerOptions": { "strict": false } }',
    "loose/a.ts": "/** A. */\nexport function a(name: string | null, last: number): void {}",
    "strict/tsconfig.json":
      '{ // a comment\n "compilerOptions": { "strict": true, "module": "esnext", "moduleResolution": "bundler", "paths": { "@shop/*": ["./lib/*"] } } }',
    "strict/lib/types.ts": "export type Name = string | null;",
    "strict/b.ts":
      'import type { Name } from "@shop/types";\n/** B. */\nexport function b(name: Name, last: number): void {}',
  });
  const [a, b] = await files.describe("loose/a.ts", "strict/b.ts");
  expect(a).toMatchObject({ problems: [], handlers: [{ inputSchema: { properties: { name: { type: "string" } } } }] });
  expect(b).toMatchObject({
    problems: [],
    handlers: [{ inputSchema: { properties: { name: { anyOf: [{ type: "string" }, { type: "null" }] } } } }],
  });
});

test("a broken tsconfig.json is reported and its files are described all the same", async () => {
  files = await HandlerFiles.make({
    "tsconfig.json": '{ "compilerOptions": { "target": "es1999" } }',
    "a.ts": "/** A. */\nexport function a(name: string): void {}",
  });
  const [a] = await files.describe("a.ts");
  expect(a?.handlers).toHaveLength(1);
  expect(a?.problems).toMatchObject([
    { file: files.path("tsconfig.json"), message: expect.stringContaining("--target") },
  ]);
});

test("what several files export is one tool: that of the file where it is written", async () => {
  files = await HandlerFiles.make({
    "_lib.ts":
      "/** Shared. */\nexport function shared(a: string): void {}\n/** Bad. */\nexport function bad(a: bigint): void {}",
    "one.ts": 'export { shared, bad } from "./_lib.ts";\nexport { own as renamed } from "./two.ts";',
    "two.ts":
      '/** Own. */\nexport function own(a: string): void {}\nexport { own as again };\nexport * from "./_lib.ts";',
  });
  const [one, two] = await files.describe("one.ts", "two.ts");
  expect(one?.handlers.map(({ name }) => name)).toEqual(["shared"]);
  expect(two?.handlers.map(({ name }) => name)).toEqual(["own"]);
  expect([...(one?.problems ?? []), ...(two?.problems ?? [])]).toMatchObject([
    { file: files.path("_lib.ts"), line: 4 },
  ]);
});

test("an alias of an imported function has the name that the file gives it", async () => {
  files = await HandlerFiles.make({
    "_lib.ts": "/** Shared. */\nexport function shared(a: string): void {}",
    "one.ts": 'export { shared as renamed } from "./_lib.ts";',
  });
  const [one] = await files.describe("one.ts");
  expect(one?.handlers).toMatchObject([{ name: "renamed", exportName: "renamed" }]);
});
