import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findBrowser } from "../../../../../src/sandbox/runtimes/bubblewrap/interpreters.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "owlclaw-browser-")));
afterAll(() => rmSync(folder, { recursive: true }));

function make(name: string, files: readonly string[]): string {
  mkdirSync(join(folder, name));
  for (const file of files) writeFileSync(join(folder, name, file), "");
  return join(folder, name, "chrome");
}

test("a browser of the operator's shows with the folder that it is in, whatever link leads to it", async () => {
  const executable = make("chrome", ["chrome", "icudtl.dat"]);
  symlinkSync(executable, join(folder, "link"));
  const trees = [{ hostPath: join(folder, "chrome"), kind: "folder" }];
  expect(await findBrowser(executable)).toEqual({ executable, trees });
  expect(await findBrowser(join(folder, "link"))).toEqual({ executable, trees });
});

test("no browser is named: the guest looks for the system's", async () => {
  expect(await findBrowser("")).toBeUndefined();
});

test("a program that is no Chromium, or not there, is refused: its folder may hold anything", async () => {
  for (const executable of [make("home", ["chrome"]), join(folder, "none")]) {
    await expect(findBrowser(executable)).rejects.toThrow(`there is no Chromium at ${executable}`);
  }
});
