import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findPython } from "../../../src/handlers/python/python-command.ts";

const find = (python: string): Promise<string> => findPython({ python, env: process.env });

test("a Python that is not where it was said to be is an error, though the PATH has one of that name", async () => {
  await expect(find("/nowhere/bin/python3")).rejects.toThrow(/no Python 3\.9 or later at \/nowhere\/bin\/python3/);
});

test("a bare name is looked for on the PATH", async () => {
  expect(path.basename(await find("python3"))).toBe("python3");
});

test("a virtualenv is named by its folder", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-venv-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(path.join(folder, "bin"));
  symlinkSync(await find(""), path.join(folder, "bin/python3"));
  expect(await find(folder)).toBe(path.join(folder, "bin/python3"));
});
