import type { GuestParams, GuestResult, Language } from "../../contract/guest.ts";
import { expect, test } from "vitest";
import { startGuest, type Guest } from "./guest-process.ts";

function run(guest: Guest, language: Language, code: string): Promise<GuestResult<"code.run">> {
  const params: GuestParams["code.run"] = {
    callId: "call",
    language,
    code,
    timeoutMs: 20_000,
    maxOutputChars: 100_000,
  };
  return guest.call("code.run", params);
}

/** What code can see of its interpreter when it is the first to run. */
const SEEN: Readonly<Record<Language, string>> = {
  python: [
    "import sys, json, linecache",
    "print(json.dumps({",
    '  "names": sorted(globals()),',
    '  "dir": sorted(dir()),',
    '  "modules": sorted(sys.modules),',
    '  "cells": sorted(name for name in linecache.cache if name.startswith("<cell")),',
    '  "output": [sys.stdout.closed, sys.stderr.closed],',
    "}))",
  ].join("\n"),
  node: [
    "console.log(JSON.stringify({",
    "  names: Reflect.ownKeys(globalThis).map(String).sort(),",
    "  modules: Object.keys(require.cache),",
    "  exitCode: process.exitCode ?? null,",
    "  listeners: process.listenerCount('uncaughtException'),",
    "}))",
  ].join("\n"),
};

const FAILING: Readonly<Record<Language, string>> = { python: "x = 1\nraise ValueError(x)", node: "null.x" };

for (const language of ["python", "node"] as const) {
  test(`the first ${language} code in a warm guest finds what it finds in a cold one`, async () => {
    const [warm, cold] = await Promise.all([startGuest(), startGuest()]);
    await warm.call("code.warm", { language, preload: [] });
    const seen = await run(warm, language, SEEN[language]);
    expect(seen.stderr.text).toBe("");
    expect(JSON.parse(seen.stdout.text)).toEqual(JSON.parse((await run(cold, language, SEEN[language])).stdout.text));
    expect(seen.interpreterRestarted).toBe(false);
    expect(warm.output).toEqual([]);
  });

  test(`the first traceback of ${language} code in a warm guest points at cell 1, and so on`, async () => {
    const guest = await startGuest();
    await guest.call("code.warm", { language, preload: [] });
    expect((await run(guest, language, FAILING[language])).error?.traceback).toContain("<cell 1>");
    expect((await run(guest, language, FAILING[language])).error?.traceback).toContain("<cell 2>");
  });

  test(`warming ${language} again leaves its variables and the numbers of its cells alone`, async () => {
    const guest = await startGuest();
    await run(guest, language, "kept = 42");
    await guest.call("code.warm", { language, preload: [] });
    expect((await run(guest, language, "kept")).value?.text).toBe("42");
    expect((await run(guest, language, FAILING[language])).error?.traceback).toContain("<cell 3>");
  });
}

test("the underscore is not there before an expression had a value", async () => {
  const guest = await startGuest();
  await Promise.all([
    guest.call("code.warm", { language: "python", preload: [] }),
    guest.call("code.warm", { language: "node", preload: [] }),
  ]);
  expect((await run(guest, "python", "_")).error?.name).toBe("NameError");
  expect((await run(guest, "node", "_")).error?.name).toBe("ReferenceError");
});

test("a process that code leaves behind is listed, also after runs that left none", async () => {
  const guest = await startGuest();
  const start = [
    "import subprocess",
    "child = subprocess.Popen(['sleep', '60'])",
    "while not open('/proc/%d/cmdline' % child.pid).read(): pass",
  ].join("\n");
  for (const code of ["1", "2"]) expect((await run(guest, "python", code)).leftRunning).toEqual([]);
  expect((await run(guest, "python", start)).leftRunning).toEqual([{ pid: expect.any(Number), command: "sleep 60" }]);
  expect((await run(guest, "python", "3")).leftRunning).toHaveLength(1);
  expect((await run(guest, "python", "child.kill()\nchild.wait()")).leftRunning).toEqual([]);
  expect((await run(guest, "python", start)).leftRunning).toHaveLength(1);
});
