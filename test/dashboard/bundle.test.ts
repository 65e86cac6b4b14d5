import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildWeb } from "../../scripts/build-web.mjs";

const KB = 1024;
let folder = "";
let assets: readonly { readonly name: string; readonly bytes: Buffer }[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "owlclaw-dashboard-"));
  await buildWeb(folder);
  const names = await readdir(join(folder, "assets"));
  assets = await Promise.all(
    names.map(async (name) => ({ name, bytes: await readFile(join(folder, "assets", name)) })),
  );
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const compressedBytes = (wanted: (name: string) => boolean): number =>
  assets.filter(({ name }) => wanted(name)).reduce((sum, { bytes }) => sum + gzipSync(bytes).length, 0);

test("the page weighs at most 300 KB compressed in all, and the terminal is loaded when it is needed", async () => {
  expect(compressedBytes(() => true)).toBeLessThan(300 * KB);
  const html = await readFile(join(folder, "index.html"), "utf8");
  const first = new Set<string>();
  const visit = (name: string): void => {
    if (first.has(name)) return;
    first.add(name);
    const text = assets.find((asset) => asset.name === name)?.bytes.toString() ?? "";
    for (const [, imported = ""] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+)"/g)) visit(imported);
  };
  for (const [, name = ""] of html.matchAll(/assets\/([\w.-]+)/g)) visit(name);
  expect(first.size).toBeGreaterThanOrEqual(4);
  expect(compressedBytes((name) => first.has(name))).toBeLessThan(40 * KB);
});

test("the page has no script or style of its own in the markup, and names nobody else's address", async () => {
  const html = await readFile(join(folder, "index.html"), "utf8");
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=/);
  const scripts = assets.filter(({ name }) => name.endsWith(".js"));
  const addresses = scripts.flatMap(({ bytes }) => [...bytes.toString().matchAll(/https?:\/\/[\w.-]+/g)].map(String));
  expect(new Set(addresses)).toEqual(new Set(["http://www.w3.org"]));
});

test("our own code never makes markup of a text", async () => {
  const source = join(import.meta.dirname, "../../web/src");
  const names = (await readdir(source, { recursive: true })).filter((name) => /\.tsx?$/.test(name));
  expect(names.length).toBeGreaterThan(50);
  for (const name of names) {
    const text = await readFile(join(source, name), "utf8");
    expect([name, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/i.exec(text)]).toEqual([
      name,
      null,
    ]);
  }
});

test("the licences of what is inside are told", async () => {
  const text = await readFile(join(folder, "licenses.txt"), "utf8");
  for (const name of ["preact", "@preact/signals", "@preact/signals-core", "@xterm/xterm", "@xterm/addon-fit"]) {
    expect(text).toMatch(new RegExp(`^${name} \\d`, "m"));
  }
});
