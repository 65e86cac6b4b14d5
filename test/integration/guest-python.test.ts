import type { GuestParams } from "../../contract/guest.ts";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { startGuest, type Guest } from "./guest-process.ts";
import { isAlive } from "./is-alive.ts";

function params(code: string, options: Partial<GuestParams["code.run"]> = {}): GuestParams["code.run"] {
  return { callId: "call", language: "python", code, timeoutMs: 20_000, maxOutputChars: 10_000, ...options };
}

function run(guest: Guest, code: string, options: Partial<GuestParams["code.run"]> = {}) {
  return guest.call("code.run", params(code, options));
}

test("state persists, and the last expression is the value", async () => {
  const guest = await startGuest();
  expect(await run(guest, "import math\nx = 20\nprint('hé')\nx + 1")).toEqual({
    status: "ok",
    value: { text: "21" },
    stdout: { text: "hé\n", totalChars: 3 },
    stderr: { text: "", totalChars: 0 },
    pictures: [],
    durationMs: expect.any(Number),
    interpreterRestarted: false,
    leftRunning: [],
  });
  expect((await run(guest, "math.floor(x * 2.6)")).value).toEqual({ text: "52" });
  expect((await run(guest, "y = 1")).value).toBeUndefined();
  expect((await run(guest, "None")).value).toBeUndefined();
  expect((await run(guest, "x;")).value).toBeUndefined();
  expect(
    (await run(guest, "class A:\n  def _repr_html_(self): return '<b>a</b>'\n  def __repr__(self): return 'A!'\nA()"))
      .value,
  ).toEqual({
    text: "A!",
    html: "<b>a</b>",
    file: expect.any(String),
  });
});

test("await works at the top", async () => {
  const guest = await startGuest();
  const code = "import asyncio\nasync def f():\n  await asyncio.sleep(0)\n  return 7\nz = await f()\nawait f() + z";
  expect((await run(guest, code)).value).toEqual({ text: "14" });
  expect((await run(guest, "lock = asyncio.Lock()\nasync with lock:\n  print('in')")).stdout.text).toBe("in\n");
});

test("tracebacks point at the code's own lines", async () => {
  const guest = await startGuest();
  await run(guest, "def half(n):\n    return n / 0");
  const { status, error } = await run(guest, "print('a')\nhalf(\n  3)");
  expect(status).toBe("error");
  expect(error).toMatchObject({ name: "ZeroDivisionError", message: "division by zero" });
  expect(error?.traceback).toContain('File "<cell 2>", line 2, in <module>');
  expect(error?.traceback).toContain('File "<cell 1>", line 2, in half');
  expect(error?.traceback).toContain("return n / 0");
  expect(error?.traceback).not.toContain("driver.py");
  const awaited = await run(guest, "async def g():\n  raise KeyError('k')\nawait g()");
  expect(awaited.error?.traceback).not.toMatch(/driver\.py|base_events/u);
  expect(awaited.error?.traceback).toContain("raise KeyError('k')");
});

test("a syntax error shows the line with a caret", async () => {
  const guest = await startGuest();
  const { error } = await run(guest, "x = 1\nif x = 2:\n  pass");
  expect(error?.name).toBe("SyntaxError");
  expect(error?.traceback).toMatch(/line 2\n\s+if x = 2:\n\s+\^+\n/u);
  expect(error?.traceback).not.toContain("driver.py");
});

test("input() is at its end, and sys.exit keeps the state", async () => {
  const guest = await startGuest();
  expect((await run(guest, "input()")).error?.name).toBe("EOFError");
  expect(await run(guest, "kept = 1\nimport sys\nsys.exit()")).toMatchObject({ status: "ok" });
  expect(await run(guest, "sys.exit(3)")).toMatchObject({
    status: "error",
    error: { name: "SystemExit", message: /3/u },
  });
  expect((await run(guest, "kept")).value).toEqual({ text: "1" });
});

test.each([
  ["os._exit", "import os; print('last'); sys=1; os._exit(5)", /exit code 5/u],
  ["a segmentation fault", "import ctypes; print('last'); ctypes.string_at(0)", /SIGSEGV/u],
  ["SIGKILL", "import os; print('last'); os.kill(os.getpid(), 9)", /SIGKILL/u],
])("after %s a fresh interpreter takes over, and the result says so", async (_name, code, reason) => {
  const guest = await startGuest();
  await run(guest, "x = 1");
  const crashed = await run(guest, code);
  expect(crashed).toMatchObject({ status: "crashed", interpreterRestarted: true, stdout: { text: "last\n" } });
  expect(crashed.error?.message).toMatch(reason);
  const next = await run(guest, "'x' in globals()");
  expect(next).toMatchObject({ status: "ok", value: { text: "False" }, interpreterRestarted: false });
});

test("an interpreter that died between two calls is replaced, and the result says so", async () => {
  const guest = await startGuest();
  const { value } = await run(guest, "import os\nos.getpid()");
  process.kill(Number(value?.text), "SIGKILL");
  await vi.waitFor(() => expect(existsSync(`/proc/${value?.text}`)).toBe(false), 20_000);
  // The guest has heard of it when it has started and ended something else.
  await guest.call("shell.exec", {
    callId: "s",
    command: ":",
    timeoutMs: 20_000,
    maxOutputChars: 10,
    background: false,
  });
  expect(await run(guest, "1")).toMatchObject({ status: "ok", interpreterRestarted: true });
});

test("a time-out ends the code and everything it started, and nothing else", async () => {
  const guest = await startGuest();
  const shell = { callId: "s", command: "sleep 300", timeoutMs: 0, maxOutputChars: 10, background: true };
  const { processId = "" } = await guest.call("shell.exec", shell);
  await run(guest, "globalThis.kept = 1", { language: "node" });
  const code = `
import subprocess, os
print('before', flush=True)
p = subprocess.Popen(['setsid', 'sleep', '300'])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('orphan', 'w').write(str(os.getpid()))
        while True: pass
    os._exit(0)
open('child', 'w').write(str(p.pid))
while True: pass`;
  const result = await run(guest, code, { timeoutMs: 10_000 });
  expect(result).toMatchObject({ status: "timeout", interpreterRestarted: true, stdout: { text: "before\n" } });
  for (const name of ["child", "orphan"]) {
    expect([name, isAlive(Number(readFileSync(join(guest.workspace, name), "utf8")))]).toEqual([name, false]);
  }
  expect((await run(guest, "kept", { language: "node" })).value).toEqual({ text: "1" });
  const output = await guest.call("shell.output", { processId, cursor: 0, maxChars: 1, waitMs: 0 });
  expect(output.isRunning).toBe(true);
  expect(await run(guest, "1 + 1")).toMatchObject({ value: { text: "2" }, interpreterRestarted: false });
});

test("runs of one language wait for each other; one that waits can be cancelled", async () => {
  const guest = await startGuest();
  const first = run(guest, "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\norder = ['first']");
  const source = new AbortController();
  const second = guest.call("code.run", params("order.append('second')"), source.signal);
  const third = run(guest, "order.append('third'); order");
  source.abort();
  writeFileSync(join(guest.workspace, "go"), "");
  expect(await first).toMatchObject({ status: "ok" });
  expect(await second).toMatchObject({ status: "cancelled", interpreterRestarted: false });
  expect((await third).value).toEqual({ text: "['first', 'third']" });
});

test("cancellation ends the code; the next result says that variables are gone", async () => {
  const guest = await startGuest();
  await run(guest, "x = 1");
  const source = new AbortController();
  const answer = guest.call("code.run", params("open('started', 'w')\nwhile True: pass"), source.signal);
  await vi.waitFor(() => expect(existsSync(join(guest.workspace, "started"))).toBe(true), 20_000);
  source.abort();
  expect(await answer).toMatchObject({ status: "cancelled" });
  expect(await run(guest, "x")).toMatchObject({ status: "error", interpreterRestarted: true });
});

test("code that closes its output closes it for itself only", async () => {
  const guest = await startGuest();
  await run(guest, "import sys, os; sys.stdout.close(); os.close(2)");
  expect((await run(guest, "print('there')\nimport subprocess\nsubprocess.run(['echo', 'again'])")).stdout.text).toBe(
    "there\nagain\n",
  );
});

test("output of child processes is caught, in order", async () => {
  const guest = await startGuest();
  const code = "import subprocess, os\nprint('a')\nsubprocess.run(['echo', 'b'])\nos.system('echo c >&2')\nprint('d')";
  expect(await run(guest, code)).toMatchObject({ stdout: { text: "a\nb\nd\n" }, stderr: { text: "c\n" } });
});

test("processes and threads that the code leaves running live on", async () => {
  const guest = await startGuest();
  const code =
    "import subprocess, threading, time\np = subprocess.Popen(['sleep', '300'])\nn = 0\ndef count():\n  global n\n  while True:\n    n += 1\n    time.sleep(0.001)\nthreading.Thread(target=count, daemon=True).start()";
  expect((await run(guest, code)).leftRunning).toEqual([{ pid: expect.any(Number), command: "sleep 300" }]);
  await vi.waitFor(async () => expect((await run(guest, "n > 5")).value?.text).toBe("True"), 20_000);
  expect((await run(guest, "p.kill(); p.wait()")).leftRunning).toEqual([]);
});

test("code that forks does not answer twice", async () => {
  const guest = await startGuest();
  const code = "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n'parent' if pid else 'child'";
  expect((await run(guest, code)).value).toEqual({ text: "'parent'" });
  expect((await run(guest, "2")).value).toEqual({ text: "2" });
  const pool =
    "from multiprocessing import Pool\ndef square(n): return n * n\nwith Pool(2) as p: r = p.map(square, [1, 2, 3])\nr";
  expect((await run(guest, pool)).value).toEqual({ text: "[1, 4, 9]" });
});

test("all output of a run is in its own result, however it comes", async () => {
  const guest = await startGuest();
  for (let round = 0; round < 200; round += 1) {
    const length = (round * 7_919) % 150_000;
    const code = `import os; os.write(1, b"o" * ${length}); os.write(2, b"e" * ${length})`;
    const { stdout, stderr } = await run(guest, code, { maxOutputChars: 200_000 });
    expect([stdout.text, stderr.text]).toEqual(["o".repeat(length), "e".repeat(length)]);
  }
});

test("a flood of output and a huge value stay bounded", async () => {
  const guest = await startGuest();
  const { stdout, value } = await run(guest, "for i in range(200000): print(i)\n'x' * 5_000_000", {
    maxOutputChars: 500,
  });
  expect(stdout.text.length).toBeLessThanOrEqual(500);
  expect(stdout.totalChars).toBe(1_288_890);
  expect(stdout.text.endsWith("199999\n")).toBe(true);
  expect(value?.text.length).toBeLessThan(600);
});

test("modules that were written or installed since are found", async () => {
  const guest = await startGuest();
  expect((await run(guest, "import fresh")).error?.name).toBe("ModuleNotFoundError");
  writeFileSync(join(guest.workspace, "fresh.py"), "value = 3");
  expect((await run(guest, "import fresh\nfresh.value")).value).toEqual({ text: "3" });
  const site = (await run(guest, "import site; site.getusersitepackages()")).value?.text.replaceAll("'", "") ?? "";
  await guest.call("shell.exec", {
    callId: "s",
    command: `mkdir -p ${site}; echo 'value = 4' > ${site}/installed_later.py`,
    timeoutMs: 9_000,
    maxOutputChars: 100,
    background: false,
  });
  expect((await run(guest, "import installed_later\ninstalled_later.value")).value).toEqual({ text: "4" });
});

test("an interpreter can be started and filled ahead", async () => {
  const guest = await startGuest();
  await guest.call("code.warm", { language: "python", preload: ["decimal", "no_such_module"] });
  expect((await run(guest, "import sys\n'decimal' in sys.modules")).value).toEqual({ text: "True" });
});

test("a missing interpreter is a failure that names what was looked for", async () => {
  const guest = await startGuest({ env: { PATH: "/nowhere" } });
  const hello = await guest.call("guest.hello", {});
  expect(hello.languages).toEqual(["node"]);
  expect(hello.diagnostics?.join()).toContain("python3");
  await expect(run(guest, "1")).rejects.toMatchObject({
    data: { kind: "interpreter_missing", message: /python3.*\/nowhere/u },
  });
});

test("with a python3 that does not work, commands still run and the guest says so", async () => {
  const folder = mkdtempSync(join(tmpdir(), "broken-python-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "python3"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const guest = await startGuest({ env: { PATH: folder } });
  const shell = { callId: "s", command: "echo fine", timeoutMs: 9_000, maxOutputChars: 100, background: false };
  expect((await guest.call("shell.exec", shell)).stdout.text).toBe("fine\n");
  expect((await guest.call("guest.hello", {})).diagnostics?.join()).toContain("python3 does not work");
  expect(await run(guest, "1")).toMatchObject({ status: "crashed", error: { message: /exit code 1/u } });
});

test("without python3, commands and time-outs still work", async () => {
  const guest = await startGuest({ env: { PATH: "/nowhere" } });
  const exec = (command: string, timeoutMs: number) =>
    guest.call("shell.exec", { callId: "s", command, timeoutMs, maxOutputChars: 1_000, background: false });
  expect(await exec("echo a; echo b >&2; exit 2", 9_000)).toMatchObject({
    exitCode: 2,
    stdout: { text: "a\n" },
    stderr: { text: "b\n" },
  });
  const late = await exec("/usr/bin/setsid /bin/sleep 300 & echo $! > pid; /bin/sleep 300", 5_000);
  expect(late.status).toBe("timeout");
  expect(isAlive(Number(readFileSync(join(guest.workspace, "pid"), "utf8")))).toBe(false);
  expect(await run(guest, "6 * 7", { language: "node" })).toMatchObject({ value: { text: "42" } });
});
