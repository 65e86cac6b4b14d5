import type { GuestParams } from "../../contract/guest.ts";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startGuest, type Guest } from "./guest-process.ts";

function run(guest: Guest, code: string, options: Partial<GuestParams["code.run"]> = {}) {
  const params: GuestParams["code.run"] = {
    callId: "c",
    language: "node",
    code,
    timeoutMs: 20_000,
    maxOutputChars: 9_000,
    ...options,
  };
  return guest.call("code.run", params);
}

async function valueOf(guest: Guest, code: string): Promise<string | undefined> {
  const { status, value, error } = await run(guest, code);
  expect(error?.traceback).toBeUndefined();
  expect(status).toBe("ok");
  return value?.text;
}

test("state persists, names can be declared again, and the last expression is the value", async () => {
  const guest = await startGuest();
  expect(
    await run(guest, "const a = 1; let b = 2; class C { n = 3 }; function f() { return 4 }\nconsole.log('hé'); a + b"),
  ).toEqual({
    status: "ok",
    value: { text: "3" },
    stdout: { text: "hé\n", totalChars: 3 },
    stderr: { text: "", totalChars: 0 },
    pictures: [],
    durationMs: expect.any(Number),
    interpreterRestarted: false,
    leftRunning: [],
  });
  expect(
    await valueOf(
      guest,
      "const a = 10, { x, y: [z = 5] } = { x: 1, y: [] }; class C { n = 30 }\n[a, b, new C().n, f(), x, z]",
    ),
  ).toBe("[ 10, 2, 30, 4, 1, 5 ]");
  expect(await valueOf(guest, "let q")).toBeUndefined();
  expect(await valueOf(guest, "({ deep: [1, { a: 2 }] })")).toBe("{ deep: [ 1, { a: 2 } ] }");
});

test("await works at the top, and what is declared beside it persists", async () => {
  const guest = await startGuest();
  const code = [
    "const wait = async (n) => n;",
    "const a = await wait(1), { b, ...rest } = await wait({ b: 2, c: 3 });",
    "let unset;",
    "for (var i = 0; i < 3; i++) { var inner = await wait(i); }",
    "for (var key of ['k']) {}",
    "async function later() { return 5 }",
    "class D { static v = 6 }",
    "await later()",
  ].join("\n");
  expect(await valueOf(guest, code)).toBe("5");
  expect(await valueOf(guest, "[a, b, rest, unset, i, inner, key, typeof later, D.v]")).toBe(
    "[ 1, 2, { c: 3 }, undefined, 3, 2, 'k', 'function', 6 ]",
  );
  expect(await valueOf(guest, "const results = []; for await (const n of [1, 2]) results.push(n); results")).toBe(
    "[ 1, 2 ]",
  );
  expect(await valueOf(guest, "async function main() { await null; console.log('done'); return 8 }\nmain()")).toBe("8");
});

test("import, import() and require work", async () => {
  const guest = await startGuest();
  writeFileSync(
    join(guest.workspace, "lib.mjs"),
    "export default 1; export const two = 2; export const meta = import.meta.url",
  );
  writeFileSync(join(guest.workspace, "old.cjs"), "module.exports = { three: 3 }");
  const code =
    "import one, {\n  two as zwei,\n} from './lib.mjs';\nimport * as path from 'node:path';\nimport 'node:os';\n[one, zwei, path.basename('/a/b')]";
  expect(await valueOf(guest, code)).toBe("[ 1, 2, 'b' ]");
  expect(await valueOf(guest, "[zwei, require('./old.cjs').three, (await import('./lib.mjs')).two]")).toBe(
    "[ 2, 3, 2 ]",
  );
  expect(await valueOf(guest, "import('./lib.mjs').then((m) => m.two)")).toBe("2");
  expect(await valueOf(guest, "export const shared = 4; export default function () {}\nimport.meta.dirname")).toBe(
    `'${guest.workspace}'`,
  );
  expect(await valueOf(guest, "shared")).toBe("4");
});

test("errors point at the code's own lines", async () => {
  const guest = await startGuest();
  const thrown = await run(guest, "const n = null;\n\nn.field");
  expect(thrown.error).toMatchObject({ name: "TypeError" });
  expect(thrown.error?.traceback).toContain("<cell 1>:3:3");
  expect(thrown.error?.traceback).not.toMatch(/node-driver|node:vm/u);
  const awaited = await run(guest, "await null; throw new RangeError('far')");
  expect(awaited.error?.traceback).toContain("<cell 2>:1:19");
  const imported = await run(guest, "import {\n  join,\n} from 'node:path';\nthrow new Error('four')");
  expect(imported.error?.traceback).toContain("<cell 3>:4:7");
  const syntax = await run(guest, "let x = 1;\nlet y = = 2;");
  expect(syntax.error).toMatchObject({
    name: "SyntaxError",
    traceback: /<cell 4>:2:9\nlet y = = 2;\n {8}\^\nSyntaxError/u,
  });
  expect((await run(guest, "throw 'plain'")).error?.message).toContain("plain");
  expect((await run(guest, "await Promise.reject(new Error('no'))")).error?.message).toBe("no");
});

test("no stack shows the interpreter itself, and globals can be declared again", async () => {
  const guest = await startGuest();
  const { value, stdout, stderr } = await run(
    guest,
    "import crypto from 'node:crypto';\nconsole.log(new Error('printed'));\nconst fetch = crypto.createHash;\nnew Error('value')",
  );
  expect(stdout.text).toBe("Error: printed\n    at <cell 1>:2:13\n");
  expect(value?.text).toMatch(/^Error: value\n {4}at <cell 1>:4:\d+$/u);
  expect(stderr.text).toBe("");
  expect(await valueOf(guest, "const crypto = require('node:crypto'); typeof crypto.createHash + fetch.name")).toBe(
    "'functioncreateHash'",
  );
});

test("starting the interpreter loads nothing that only some code needs", async () => {
  const guest = await startGuest();
  expect(await valueOf(guest, "process.moduleLoadList.filter((name) => name.includes('undici'))")).toBe("[]");
});

test("process.exit ends the run and keeps the state", async () => {
  const guest = await startGuest();
  expect(await run(guest, "globalThis.kept = 1; process.exit(0); console.log('never')")).toMatchObject({
    status: "ok",
    stdout: { text: "" },
  });
  expect((await run(guest, "process.exit(3)")).error?.message).toContain("process.exit(3)");
  expect(await valueOf(guest, "kept")).toBe("1");
});

test("stray errors are printed and do not end the interpreter", async () => {
  const guest = await startGuest();
  const code =
    "globalThis.kept = 1; Promise.reject(new Error('stray')); setTimeout(() => { throw new Error('late') }, 1); await new Promise((r) => setTimeout(r, 50))";
  const { stderr } = await run(guest, code);
  expect(stderr.text).toMatch(/stray[\s\S]*late/u);
  expect(await valueOf(guest, "kept")).toBe("1");
});

test("a crash starts a fresh interpreter, and the result says so", async () => {
  const guest = await startGuest();
  expect(await run(guest, "console.log('last'); process.kill(process.pid, 'SIGKILL'); while (true);")).toMatchObject({
    status: "crashed",
    interpreterRestarted: true,
    stdout: { text: "last\n" },
    error: { message: /SIGKILL/u },
  });
  expect(await valueOf(guest, "1")).toBe("1");
});

test("a time-out ends an endless loop and what it started", async () => {
  const guest = await startGuest();
  const code =
    "const { spawn } = require('node:child_process'); const child = spawn('setsid', ['sleep', '300'], { stdio: 'inherit' }); require('node:fs').writeFileSync('pid', String(child.pid)); console.log('so far'); while (true);";
  expect(await run(guest, code, { timeoutMs: 10_000 })).toMatchObject({
    status: "timeout",
    stdout: { text: "so far\n" },
  });
  const pid = readFileSync(join(guest.workspace, "pid"), "utf8");
  expect(existsSync(`/proc/${pid}`)).toBe(false);
  expect((await run(guest, "typeof child")).value?.text).toBe("'undefined'");
});

test("output of child processes is caught", async () => {
  const guest = await startGuest();
  const code =
    "console.log('a'); require('node:child_process').execSync('echo b; echo c >&2', { stdio: 'inherit' }); console.error('d')";
  expect(await run(guest, code)).toMatchObject({ stdout: { text: "a\nb\n" }, stderr: { text: "c\nd\n" } });
});
