import { createHash } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { describeTypeScript } from "../../../../src/handlers/typescript/describe-files.ts";
import { HandlerFiles } from "./handler-files.ts";

const ORDER = 'import type { Item } from "./item.ts";\n/** Orders. */\nexport function order(item: Item): void {}';
const GREET = "/** Greets. */\nexport function greet(name: string): string { return name; }";

let files: HandlerFiles;
let started = 0;
const countStart = (): void => {
  started += 1;
};

beforeEach(async () => {
  files = await HandlerFiles.make({
    // A small library: these tests start the compiler often.
    "../tsconfig.json": '{ "compilerOptions": { "strict": true, "lib": ["es5"], "types": [] } }',
    "item.ts": "export interface Item { id: string }",
    "order.ts": ORDER,
    "greet.ts": GREET,
  });
  started = 0;
  subscribe("child_process", countStart);
});
afterEach(async () => {
  unsubscribe("child_process", countStart);
  await files.remove();
});

test("what did not change is described without the compiler", async () => {
  const first = await files.describe("order.ts", "greet.ts");
  expect(started).toBe(1);
  expect(await files.describe("order.ts", "greet.ts")).toEqual(first);
  expect(await files.describe("greet.ts")).toEqual([first[1]]);
  // The content counts, not the time.
  await utimes(files.path("greet.ts"), new Date(0), new Date(0));
  expect(await files.describe("order.ts", "greet.ts")).toEqual(first);
  expect(started).toBe(1);
});

test("200 handlers in 40 files start no compiler the second time", async () => {
  const names = Array.from({ length: 40 }, (_, index) => `many-${index}.ts`);
  for (const [index, name] of names.entries()) {
    const functions = Array.from(
      { length: 5 },
      (_, at) =>
        `/** Does ${at}. */\nexport function do_${index}_${at}(a: string, b?: number): { ok: boolean } { return { ok: true }; }`,
    );
    await files.write(name, functions.join("\n"));
  }
  const first = await files.describe(...names);
  expect(first.flatMap(({ handlers }) => handlers)).toHaveLength(200);
  expect(await files.describe(...names)).toEqual(first);
  expect(started).toBe(1);
});

test("a change of an import describes the files that use it again, and no others", async () => {
  await files.describe("order.ts", "greet.ts");
  await markCached();
  await files.write("item.ts", "export interface Item { id: string; size: number }");
  const [order, greet] = await files.describe("order.ts", "greet.ts");
  expect(order?.handlers[0]?.inputSchema["required"]).toEqual(["id", "size"]);
  expect(order?.handlers[0]?.description).toBe("Orders.");
  expect(greet?.handlers[0]?.description).toBe("from the cache");
  expect(order?.dependencies).toContain(files.path("item.ts"));
  expect(greet?.dependencies).not.toContain(files.path("item.ts"));
});

test("a change of the same length at the same time is noticed", async () => {
  const time = new Date();
  await utimes(files.path("greet.ts"), time, time);
  await files.describe("greet.ts");
  await files.write("greet.ts", GREET.replace("Greets.", "Grates."));
  await utimes(files.path("greet.ts"), time, time);
  expect((await files.describe("greet.ts"))[0]?.handlers[0]?.description).toBe("Grates.");
});

test("a missing import that appears is noticed", async () => {
  await rm(files.path("item.ts"));
  expect((await files.describe("order.ts"))[0]).toMatchObject({ handlers: [], problems: [{ line: 3 }] });
  await files.write("item.ts", "export interface Item { id: string }");
  expect((await files.describe("order.ts"))[0]).toMatchObject({ handlers: [{ name: "order" }], problems: [] });
});

test("a tsconfig.json that appears or changes is noticed", async () => {
  await files.write("maybe.ts", "/** Maybe. */\nexport function maybe(name: string | null, last: number): void {}");
  const nameSchema = async (): Promise<unknown> =>
    Object(Object((await files.describe("maybe.ts"))[0]?.handlers[0]?.inputSchema["properties"])["name"]);
  expect(await nameSchema()).toEqual({ anyOf: [{ type: "string" }, { type: "null" }] });
  await files.write("base.json", '{ "compilerOptions": { "strict": false, "lib": ["es5"], "types": [] } }');
  await files.write("tsconfig.json", '{ "extends": "./base.json" }');
  expect(await nameSchema()).toEqual({ type: "string" });
  await files.write("base.json", '{ "compilerOptions": { "strict": true, "lib": ["es5"], "types": [] } }');
  expect(await nameSchema()).toEqual({ anyOf: [{ type: "string" }, { type: "null" }] });
});

test("a cache that is broken, cut or empty is made again without a word", async () => {
  const first = await files.describe("greet.ts");
  const path = join(files.cacheFolder, "typescript-handlers.json");
  const whole = await readFile(path, "utf8");
  for (const [index, broken] of [`${whole.slice(0, 43)}\n{`, whole.slice(0, -20), ""].entries()) {
    await writeFile(path, broken);
    expect(await files.describe("greet.ts")).toEqual(first);
    expect(started).toBe(index + 2);
  }
  expect(await files.describe("greet.ts")).toEqual(first);
  expect(started).toBe(4);
});

test("a cache folder that cannot be written costs time only", async () => {
  const cacheFolder = await files.write("not-a-folder", "");
  const [greet] = await describeTypeScript({ files: [files.path("greet.ts")], cacheFolder });
  expect(greet?.handlers).toHaveLength(1);
});

test("an aborted description ends at once and stores nothing", async () => {
  const abort = new AbortController();
  const pending = describeTypeScript({
    files: [files.path("greet.ts")],
    cacheFolder: files.cacheFolder,
    signal: abort.signal,
  });
  abort.abort(new Error("enough"));
  await expect(pending).rejects.toThrow("enough");
});

/** Rewrites the cache so that what comes from it can be told from what was described anew. */
async function markCached(): Promise<void> {
  const path = join(files.cacheFolder, "typescript-handlers.json");
  const text = await readFile(path, "utf8");
  const body = text.slice(text.indexOf("\n") + 1).replaceAll(/"(Orders|Greets)\."/g, '"from the cache"');
  await writeFile(path, `${createHash("sha256").update(body).digest("base64url")}\n${body}`);
}
