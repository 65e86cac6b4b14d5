import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { describe, expect, test } from "vitest";
import { BIN, environment, scratchFile, startArguments, until, writeConfig } from "./harness.ts";
import { StdioLine } from "./stdio-line.ts";
import { expectedData, text } from "./wire-messages.ts";

const ping = (id: number | string): string => JSON.stringify({ jsonrpc: "2.0", id, method: "ping" });
const call = (id: number, name: string, args: object = {}): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } });

describe("lines on stdin", () => {
  test("[004-R2.2] [004-R2.8] a message is a line, however its bytes arrive", async () => {
    const line = new StdioLine();
    await line.initialize();
    const message = Buffer.from(`${call(10, "echo", { text: "grüß 👋" })}\n`);
    for (const byte of message) line.write(Buffer.of(byte));
    expect(text(await line.answer(10))).toBe("grüß 👋");
    line.write(ping(11));
    expect(line.received.some(({ id }) => id === 11)).toBe(false);
    line.write("\n");
    expect((await line.answer(11)).result).toEqual({});
    await line.finish();
  });

  test("an unfinished line is not served, and what was sent before it is", async () => {
    const line = new StdioLine();
    await line.initialize();
    line.write(`${ping(20)}\n${ping(21).slice(0, 10)}`);
    await line.answer(20);
    expect(line.received.some(({ id }) => id === 21)).toBe(false);
    line.write(`${ping(21).slice(10)}\n`);
    await line.answer(21);
    await line.finish();
  });

  test("[004-R2.3] several messages in one chunk get one answer line each", async () => {
    const line = new StdioLine();
    await line.initialize();
    line.write([1, 2, 3, 4, 5].map((id) => `${ping(`many-${id}`)}\n`).join(""));
    for (const id of [1, 2, 3, 4, 5]) expect((await line.answer(`many-${id}`)).result).toEqual({});
    await line.finish();
  });

  test("CRLF and empty lines are no messages of their own", async () => {
    const line = new StdioLine();
    await line.initialize();
    const before = line.received.length;
    line.write(`\r\n\n   \n${ping(30)}\r\n\r\n${ping(31)}\r\n`);
    await Promise.all([line.answer(30), line.answer(31)]);
    expect(line.received.length - before).toBe(2);
    await line.finish();
  });

  test("[004-R1.9] [004-R13.2] text that is no JSON gets -32700 with the position, and the next line is served", async () => {
    const line = new StdioLine();
    await line.initialize();
    line.write(`{"jsonrpc": "2.0", "id": 40, oops}\n${ping(41)}\n`);
    expect((await line.answer(null)).error).toEqual({
      code: -32700,
      message: expect.stringContaining("position 29"),
      data: expectedData("parse_error", { position: 29, line: 1, column: 30, retryable: false }),
    });
    await line.answer(41);
    await line.finish();
  });

  test("invalid UTF-8 gets -32700 with the position, and the next line is served", async () => {
    const line = new StdioLine();
    await line.initialize();
    line.write(Buffer.concat([Buffer.from('{"a": "'), Buffer.of(0xff, 0xfe), Buffer.from(`"}\n${ping(50)}\n`)]));
    expect((await line.answer(null)).error).toEqual({
      code: -32700,
      message: expect.stringContaining("UTF-8"),
      data: expectedData("parse_error", { position: 7 }),
    });
    await line.answer(50);
    await line.finish();
  });

  test("a line over stdio.maxLineBytes is refused once, and the next line is served", async () => {
    const line = new StdioLine({ config: { stdio: { maxLineBytes: 2048 } } });
    await line.initialize();
    line.write(`${call(60, "echo", { text: "x".repeat(100_000) })}\n${ping(61)}\n`);
    await line.answer(61);
    const refusals = line.received.filter(({ id }) => id === null);
    expect(refusals).toHaveLength(1);
    expect(refusals[0]?.error).toEqual({
      code: -32600,
      message: expect.stringContaining("2048"),
      data: expectedData("invalid_request", { limit: 2048 }),
    });
    expect(line.received.some(({ id }) => id === 60)).toBe(false);
    await line.finish();
  });

  test("a last line without a newline is served", async () => {
    const line = new StdioLine();
    await line.initialize();
    line.end(ping(70));
    expect((await line.answer(70)).result).toEqual({});
    expect(await line.exit()).toEqual({ code: 0, signal: null });
  });

  test("a server that gets nothing at all ends with its input", async () => {
    const line = new StdioLine();
    line.end();
    expect(await line.exit()).toEqual({ code: 0, signal: null });
    expect(line.received).toEqual([]);
  });
});

describe("what is written", () => {
  test("[004-R2.4] [004-R2.6] stdout carries JSON-RPC and nothing else; logs, a handler's prints included, are on stderr", async () => {
    const line = new StdioLine({ config: { logging: { level: "debug" } } });
    await line.initialize();
    line.send({ jsonrpc: "2.0", id: 80, method: "tools/call", params: { name: "writes_to_stdout" } });
    line.send({ jsonrpc: "2.0", id: 81, method: "tools/call", params: { name: "fail" } });
    line.write("nonsense\n");
    expect(text(await line.answer(80))).toBe("printed");
    await Promise.all([line.answer(81), line.answer(null)]);
    await line.finish();
    expect(line.stderr.join("\n")).toContain("printed by a handler");
    expect(line.logs.map(({ message }) => message)).toEqual(expect.arrayContaining(["tool failed", "stopped"]));
    // Colours, spinners and prompts need control characters.
    expect(line.stderr.join("")).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/);
  });

  test("every answer has jsonrpc 2.0 and the id of its request, whatever its type", async () => {
    const line = new StdioLine();
    await line.initialize();
    for (const id of [0, -1, 2 ** 40, "a", "0", ""]) {
      line.write(`${ping(id)}\n`);
      expect(await line.answer(id)).toEqual({ jsonrpc: "2.0", id, result: {} });
    }
    await line.finish();
  });

  test("a client that reads late gets every answer", async () => {
    const line = new StdioLine({
      config: {
        tools: { maxResultChars: 1_000_000 },
        governance: { defaults: { callsPerMinute: 100_000, concurrency: 300 } },
      },
    });
    await line.initialize();
    line.pauseReading();
    for (let id = 1000; id < 1300; id++) line.write(`${call(id, "talkative", { chars: 100_000 })}\n`);
    line.resumeReading();
    for (let id = 1000; id < 1300; id++) expect(text(await line.answer(id))).toHaveLength(100_000);
    await line.finish();
  });
});

/** For a machine with other work: without its own end a server would stay for much longer, or for ever. */
const BUSY_MS = 5000;

describe("the end of a stdio server", () => {
  test("[004-R2.5] end of input: the running request is finished and answered, then the server exits", async () => {
    const line = new StdioLine();
    await line.initialize();
    line.write(`${call(90, "hold", { label: "eof" })}\n`);
    await hasStarted(line, "eof");
    line.end(`${call(91, "release", { label: "eof" })}\n`);
    expect(text(await line.answer(90))).toBe("released eof");
    expect(await line.exit()).toEqual({ code: 0, signal: null });
  });

  test("[004-R2.5] SIGTERM: the running request is finished and answered, then the server exits", async () => {
    const line = new StdioLine();
    await line.initialize();
    const releaseFile = scratchFile();
    line.write(`${call(90, "hold", { label: "term", releaseFile })}\n`);
    await hasStarted(line, "term");
    line.child.kill("SIGTERM");
    await line.logged("stopping");
    expect(line.received.some(({ id }) => id === 90)).toBe(false);
    writeFileSync(releaseFile, "");
    expect(text(await line.answer(90))).toBe("released term");
    expect(await line.exit()).toEqual({ code: 0, signal: null });
  });

  test("[004-R2.7] a call that does not end is cancelled, and the server is gone within 5 s of the end of input", async () => {
    const line = new StdioLine();
    await line.initialize();
    line.write(`${call(90, "hold", { label: "forever" })}\n`);
    await hasStarted(line, "forever");
    const startedAt = performance.now();
    line.end();
    expect(await line.exit()).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedAt).toBeLessThan(5000 + BUSY_MS);
  });

  test("[004-R2.7] a client that closes its end and reads nothing does not keep the server alive", async () => {
    const line = await unreadLine();
    const startedAt = performance.now();
    line.end();
    await line.exit();
    expect(performance.now() - startedAt).toBeLessThan(5000 + BUSY_MS);
  });

  test("SIGTERM ends a server whose client reads nothing, within the same 5 s", async () => {
    const line = await unreadLine();
    const startedAt = performance.now();
    line.child.kill("SIGTERM");
    await line.exit();
    expect(performance.now() - startedAt).toBeLessThan(5000 + BUSY_MS);
  });

  test("a second signal ends it at once", async () => {
    const line = new StdioLine();
    await line.initialize();
    line.write(`${call(90, "hold", { label: "stuck" })}\n`);
    await hasStarted(line, "stuck");
    line.child.kill("SIGTERM");
    await line.logged("stopping");
    line.child.kill("SIGINT");
    expect(await line.exit()).toEqual({ code: null, signal: "SIGINT" });
  });

  test("it ends when its parent dies, though the pipe stays open", async () => {
    const argv = [BIN, ...startArguments("stdio")];
    // The parent gives the server a pipe that this test holds open, says its pid, and dies when told to.
    const script = `
      const { spawn } = require("node:child_process");
      const server = spawn(process.execPath, ${JSON.stringify(argv)}, { stdio: [3, "ignore", "inherit"] });
      console.log(server.pid);
      process.stdin.once("data", () => process.exit(0));`;
    const parent = spawn(process.execPath, ["-e", script], {
      env: environment(),
      stdio: ["pipe", "pipe", "pipe", "pipe"],
    });
    const [pid] = await new Promise<number[]>((resolve) => {
      createInterface({ input: parent.stdout }).once("line", (line) => resolve([Number(line)]));
    });
    const logs: string[] = [];
    createInterface({ input: parent.stderr }).on("line", (line) => logs.push(line));
    await until(
      () => logs.join("\n"),
      (text) => text.includes("server started"),
    );
    parent.stdin.write("die\n");
    await until(
      () => logs.join("\n"),
      (text) => text.includes("stopped"),
    );
    expect(logs.join("\n")).toContain("parent process is gone");
    await until(
      () => isAlive(pid ?? 0),
      (alive) => !alive,
    );
  });
});

test("[004-R2.1] [003-FR-001] without a transport named, JSON-RPC is served over stdio", async () => {
  const line = new StdioLine({}, ["mcp-server", "start", "--config", writeConfig()]);
  const { result } = await line.initialize();
  expect(result).toEqual({
    protocolVersion: "2025-11-25",
    capabilities: expect.objectContaining({ tools: { listChanged: true } }),
    serverInfo: expect.objectContaining({ name: "owlclaw" }),
  });
  expect(text(await line.request("tools/call", { name: "echo", arguments: { text: "hi" } }))).toBe("hi");
  await line.finish();
});

/** A server that has more to say than the pipe holds, to a client that has stopped reading. */
async function unreadLine(): Promise<StdioLine> {
  const line = new StdioLine({
    config: {
      tools: { maxResultChars: 1_000_000 },
      governance: { defaults: { callsPerMinute: 100_000, concurrency: 300 } },
    },
  });
  await line.initialize();
  line.pauseReading();
  for (let id = 1000; id < 1050; id++) line.write(`${call(id, "talkative", { chars: 100_000 })}\n`);
  await new Promise<void>((resolve) => line.child.stdin?.write("\n", () => resolve()));
  return line;
}

async function hasStarted(line: StdioLine, label: string): Promise<void> {
  const observe = { name: "observe", arguments: { label } };
  await until(
    () => line.request("tools/call", observe),
    ({ result }) => result?.["structuredContent"]?.started === true,
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
