import { beforeAll, describe, expect, test } from "vitest";
import { connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { ATTEMPT, type Inside, openInside, textOf } from "./sandbox-lab.ts";
import { forge } from "./take-over.ts";

let server: Server;
let witness: Inside;

/** Of a client of its own: after a violation a client waits for its next sandbox. */
async function openSandbox(): Promise<Inside> {
  return await openInside(await connectHttp(await server.url()));
}

beforeAll(async () => {
  server = new Server(makePlace(), { sandbox: { maxPerPrincipal: 50 } });
  witness = await openSandbox();
  await witness.python("kept = 41");
});

async function expectOthersUntouched(): Promise<void> {
  const { structuredContent } = await witness.call("code_run", { code: "kept + 1" });
  expect(structuredContent).toMatchObject({ value: "42" });
  expect(structuredContent).not.toHaveProperty("sandbox_restarted");
  expect(server.child.exitCode).toBeNull();
}

const say = (text: string): string => `process.stdout.write(${JSON.stringify(text)})`;
const framed = (body: unknown): string => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
};
const frame = (body: unknown): string => say(framed(body));

describe("a guest that was taken over", () => {
  test("can be made to run what user code wants, which the next tests rely on", async () => {
    const inside = await openSandbox();
    expect(await forge(inside, "`${6 * 7} ${process.pid}`", { afterwards: "true", timeoutSeconds: 40 })).toContain(
      "42 2",
    );
    await expectOthersUntouched();
  });

  /** One of each kind; the client of guests is tried with all of them in test/unit/sandbox, and the long run with all of them here. */
  const FRAMES: readonly (readonly [string, string])[] = [
    ["no header", say("garbage\r\n\r\n")],
    ["a frame one byte over the limit", say(`Content-Length: ${8 * 1024 * 1024 + 1}\r\n\r\n`)],
    ["a body that is no JSON", frame("abcde")],
    ["an answer to another id", frame({ jsonrpc: "2.0", id: "A".repeat(20), result: {} })],
    ["a request to the host", frame({ jsonrpc: "2.0", id: 1, method: "file.read", params: { path: "/etc/passwd" } })],
    ["output in another form", frame({ jsonrpc: "2.0", method: "output", params: { callId: {}, __proto__: 1 } })],
    ["deep nesting", `process.stdout.write("Content-Length: 2000000\\r\\n\\r\\n" + "[".repeat(2_000_000))`],
  ];
  const MORE_FRAMES: typeof FRAMES = [
    ["an endless header", 'process.stdout.write("A".repeat(1_000_000))'],
    ["a huge announced frame", say("Content-Length: 9999999999\r\n\r\n")],
    ["a negative length", say("Content-Length: -1\r\n\r\n")],
    ["a length in hex", say("Content-Length: 0x10\r\n\r\n")],
    ["two lengths", say("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}")],
    ["a batch", frame([])],
    ["null", frame("null")],
    ["an answer to a number", frame({ jsonrpc: "2.0", id: 1, result: {} })],
    ["an answer without id", frame({ jsonrpc: "2.0", id: null, error: { code: 1, message: "x" } })],
    ["a notification that no guest sends", frame({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } })],
  ];

  test.concurrent.each(process.env["OWLCLAW_TEST_LONG"] === "1" ? [...FRAMES, ...MORE_FRAMES] : FRAMES)(
    "is ended with its sandbox for %s, and nobody else notices",
    async (_what, expression) => {
      const inside = await openSandbox();
      await inside.call("file_write", { path: "keep.txt", content: "kept" });
      const said = await forge(inside, expression);
      expect(said).toContain("the sandbox ended while the call ran");
      expect(said).toMatch(/malformed|not as agreed/);
      expect(said).toContain('"sandbox_restarted":true');
      await expectOthersUntouched();
      expect((await inside.call("file_read", { path: "keep.txt" })).structuredContent).toMatchObject({
        content: "kept",
      });
    },
  );

  // process.kill would wait for the debugger to go away first.
  test.concurrent.each(["process.abort()", "process.getBuiltinModule('child_process').execSync('kill -9 2')"])(
    "that ends by %s costs its own sandbox alone",
    async (expression) => {
      const inside = await openSandbox();
      const said = await forge(inside, expression);
      expect(said).toContain("sandbox_restarted");
      expect(said).toMatch(/first process ended|stream ended/);
      expect(await inside.sh("echo again")).toBe("again\n");
      await expectOthersUntouched();
    },
  );

  test.concurrent("that never answers is ended after the time-out, and so is its sandbox", async () => {
    const inside = await openSandbox();
    expect(await forge(inside, "for (;;);", { afterwards: "sleep 60", timeoutSeconds: 8 })).toContain(
      "it did not answer",
    );
    expect(await inside.sh("echo again")).toBe("again\n");
    await expectOthersUntouched();
  });

  test("that floods the host with good frames is slowed down, and others answer", async () => {
    const inside = await openSandbox();
    const note = JSON.stringify({
      jsonrpc: "2.0",
      method: "output",
      params: { callId: "nobody", stream: "stdout", text: "x" },
    });
    const flood = `setInterval(() => { for (let i = 0; i < 2000; i++) process.stdout.write(${JSON.stringify(`Content-Length: ${note.length}\r\n\r\n${note}`)}); }, 1)`;
    const over = new AbortController();
    const running = forge(inside, flood, { afterwards: "sleep 2", timeoutSeconds: 40 }).finally(() => over.abort());
    running.catch(() => undefined);
    while (!over.signal.aborted) await expectOthersUntouched();
    expect(await running).toContain("shell_exec");
    await inside.call("sandbox_destroy");
    await expectOthersUntouched();
  });
});

test("the connection to the server cannot be opened from outside the guest", async () => {
  const inside = await openSandbox();
  const seen = await inside.python(`
import os
${ATTEMPT}
for pid in (1, 2):
    for number in (0, 1, 2):
        for flags in (os.O_WRONLY, os.O_RDONLY): attempt(number, lambda: os.open(f"/proc/{pid}/fd/{number}", flags))
`);
  const answers = seen.trim().split("\n");
  expect(answers).toHaveLength(12);
  expect(answers.filter((line) => !line.endsWith("refused"))).toEqual([]);
});

test("a guest whose memory was overwritten is ended with its sandbox", async () => {
  const inside = await openSandbox();
  await inside.call("file_write", {
    path: "overwrite.py",
    content: `
count = 0
with open("/proc/2/mem", "r+b", 0) as memory:
    for line in open("/proc/2/maps"):
        where, rights, rest = line.split(None, 2)
        if not rights.startswith("rw"): continue
        start, end = (int(part, 16) for part in where.split("-"))
        if end - start > 1 << 28: continue
        try: memory.seek(start); data = memory.read(end - start)
        except (OSError, ValueError): continue
        at = data.find(b"Content-Length: ")
        while at != -1:
            memory.seek(start + at); memory.write(b"Kontent"); count += 1
            at = data.find(b"Content-Length: ", at + 1)
print(count)
`,
  });
  const said = textOf(await inside.call("shell_exec", { command: "python3 overwrite.py" }));
  expect(said).toContain("malformed frame");
  expect(await inside.sh("echo again")).toBe("again\n");
  await expectOthersUntouched();
});
