import type { Language } from "../../contract/guest.ts";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { startGuest, type Guest } from "./guest-process.ts";

const run = (guest: Guest, language: Language, code: string) =>
  guest.call("code.run", { callId: "c", language, code, timeoutMs: 20_000, maxOutputChars: 9_000 });

/** Lets the code print, waits for the file that it writes then, and for the guest to have read what it printed. */
async function letPrint(guest: Guest): Promise<void> {
  writeFileSync(join(guest.workspace, "go"), "");
  await vi.waitFor(() => expect(existsSync(join(guest.workspace, "printed"))).toBe(true), 10_000);
  await guest.call("guest.hello", {});
}

test("what a Python thread prints after its run comes with the next one, once", async () => {
  const guest = await startGuest();
  const code = [
    "import os, threading, time",
    "def later():\n  while not os.path.exists('go'): time.sleep(0.01)\n  print('from the thread')\n  open('printed', 'w')",
    "threading.Thread(target=later).start()",
  ].join("\n");
  expect((await run(guest, "python", code)).earlierOutput).toBeUndefined();
  await letPrint(guest);
  expect(await run(guest, "python", "print('now')")).toMatchObject({
    earlierOutput: "from the thread\n",
    stdout: { text: "now\n" },
  });
  expect((await run(guest, "python", "1")).earlierOutput).toBeUndefined();
});

test("what a timer of Node prints, and the error it throws, come with the next run", async () => {
  const guest = await startGuest();
  const code = [
    "const { existsSync, writeFileSync } = require('fs')",
    "process.once('uncaughtException', () => setImmediate(() => writeFileSync('printed', '')))",
    "const timer = setInterval(() => { if (!existsSync('go')) return; clearInterval(timer); console.log('ticked'); throw new Error('late') }, 10)",
  ].join("\n");
  await run(guest, "node", code);
  await letPrint(guest);
  expect((await run(guest, "node", "1")).earlierOutput).toMatch(/^ticked\nUncaught Error: late/);
});

test("of a flood between calls the end is kept, and the loss is said", async () => {
  const guest = await startGuest();
  const command = "until [ -e go ]; do sleep 0.01; done; seq 1 200000; echo the end; touch printed";
  await run(guest, "python", `import subprocess\np = subprocess.Popen(${JSON.stringify(command)}, shell=True)`);
  await letPrint(guest);
  const { earlierOutput = "" } = await run(guest, "python", "1");
  expect(earlierOutput).toMatch(/^\[… \d+ bytes before this are not kept …\]\n[\s\S]*the end\n$/u);
  expect(earlierOutput.length).toBeLessThan(20_000);
});

test("Python code that closes its output descriptors closes them for itself alone", async () => {
  const guest = await startGuest();
  await run(guest, "python", "import os; os.close(1); os.close(2)");
  expect(await run(guest, "python", "import sys; print('out'); print('err', file=sys.stderr)")).toMatchObject({
    status: "ok",
    stdout: { text: "out\n" },
    stderr: { text: "err\n" },
  });
});

test("a file that took the number of a closed output gets nothing of what is printed later", async () => {
  const guest = await startGuest();
  await run(guest, "python", "import os; os.close(1); f = os.open('taken.txt', os.O_CREAT | os.O_WRONLY)");
  expect((await run(guest, "python", "print('out')")).stdout.text).toBe("out\n");
  expect((await run(guest, "python", "open('taken.txt').read()")).value?.text).toBe("''");
});

test.each([
  ["process.stdout.end(); process.stderr.end()"],
  ["process.stdout.destroy(); process.stderr.destroy()"],
  ["require('fs').closeSync(1); require('fs').closeSync(2)"],
])("Node code that closes its output closes it for itself alone: %s", async (code) => {
  const guest = await startGuest();
  await run(guest, "node", "console.log('before'); console.error('before')");
  await run(guest, "node", code);
  for (const word of ["one", "two"]) {
    expect(await run(guest, "node", `console.log('${word}'); process.stderr.write('e${word}\\n'); 5`)).toMatchObject({
      status: "ok",
      value: { text: "5" },
      stdout: { text: `${word}\n` },
      stderr: { text: `e${word}\n` },
    });
  }
});

test("a task without a running loop fails with a way to start one", async () => {
  const guest = await startGuest();
  const { error } = await run(guest, "python", "import asyncio\nasync def f(): pass\nasyncio.create_task(f())");
  expect(error?.message).toMatch(/no running event loop.*await/su);
  const awaited = await run(
    guest,
    "python",
    "async def g(): print('ran')\nt = asyncio.create_task(g())\nawait asyncio.sleep(0)",
  );
  expect(awaited.stdout.text).toBe("ran\n");
});

test("a picture that is too large is said to be left out, with what to do", async () => {
  const guest = await startGuest();
  // A stand-in for PIL, which is not part of every installation.
  const image =
    "class Image:\n  mode = 'RGB'\n  def save(self, to, kind): to.write(b'x' * 5_000_000)\n  def show(self): pass\n";
  writeFileSync(join(guest.workspace, "PIL.py"), "");
  const code = `import sys, types\npil = types.ModuleType('PIL.Image')\nexec(${JSON.stringify(image)}, pil.__dict__)\nsys.modules['PIL.Image'] = pil\npil.Image()`;
  const { stderr, pictures } = await run(guest, "python", code);
  expect(pictures).toEqual([]);
  expect(stderr.text).toMatch(/^\[1 picture was left out: .*4 MiB.*file/u);
});

test("the HTML form of a value is kept in a file that can be read", async () => {
  const guest = await startGuest();
  const { value } = await run(guest, "python", "class T:\n  def _repr_html_(self): return '<b>t</b>'\nT()");
  expect(value).toMatchObject({ html: "<b>t</b>", file: expect.any(String) });
  const read = await guest.call("file.read", { path: value?.file ?? "", encoding: "auto", maxBytes: 1_000 });
  expect(read.content).toBe("<b>t</b>");
});

test("an output beyond what is kept says how much is kept, in the result and at its end", async () => {
  const guest = await startGuest();
  const { stdout } = await run(
    guest,
    "python",
    "line = 'x' * 1023 + '\\n'\nfor _ in range(66_000): print(line, end='')",
  );
  expect(stdout.totalChars).toBe(66_000 * 1024);
  expect(stdout.keptBytes).toBeLessThanOrEqual(64 * 1024 * 1024);
  const file = stdout.file ?? "";
  const params = { path: file, encoding: "auto", maxBytes: 1_000 } as const;
  const { sizeBytes } = await guest.call("file.read", { ...params, length: 1 });
  const end = await guest.call("file.read", { ...params, offset: sizeBytes - 100 });
  expect(end.content).toMatch(/\n\[… the rest was not kept: .*64 MiB.* …\]\n$/u);
  const short = await run(guest, "python", "print('y' * 20_000)");
  expect(short.stdout.file).toBeDefined();
  expect(short.stdout.keptBytes).toBeUndefined();
});
