import { createConnection, createServer, type Socket } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { CREDIT_STEP_BYTES, creditedStream } from "../../../../../src/sandbox/runtimes/microsandbox/host-socket.ts";

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const clean of cleanups.splice(0)) clean();
});

/** Two ends of a real socket: the host's, and that of a machine. */
async function socketPair(): Promise<[host: Socket, machine: Socket]> {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-line-"));
  const server = createServer({ allowHalfOpen: true });
  cleanups.push(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const path = join(folder, "s");
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve));
  const machine = createConnection({ path, allowHalfOpen: true });
  const host = await accepted;
  cleanups.push(() => {
    host.destroy();
    machine.destroy();
  });
  return [host, machine];
}

test("what is written arrives with its length in front", async () => {
  const [host, machine] = await socketPair();
  const { input } = creditedStream(host);
  input.write("hello");
  input.end("you");
  expect((await buffer(machine)).toString("latin1")).toBe("\0\0\0\u0005hello\0\0\0\u0003you");
});

test("each step that was read is told, and data passes unchanged", async () => {
  const [host, machine] = await socketPair();
  const { input, output } = creditedStream(host);
  const sent = Buffer.alloc(CREDIT_STEP_BYTES * 3 + 5, "abc");
  machine.end(sent);
  expect((await buffer(output)).equals(sent)).toBe(true);
  input.end();
  expect(await buffer(machine)).toEqual(Buffer.alloc(4 * 3));
});

test("what nobody reads is not told as taken", async () => {
  const [host, machine] = await socketPair();
  const { output } = creditedStream(host);
  const credits: Buffer[] = [];
  machine.on("data", (chunk: Buffer) => credits.push(chunk));
  machine.write(Buffer.alloc(CREDIT_STEP_BYTES * 40));
  await new Promise((resolve) => output.once("readable", resolve));
  expect(Buffer.concat(credits).length / 4).toBeLessThan(20);
});

test("a machine that is gone ends the output, and nothing throws", async () => {
  const [host, machine] = await socketPair();
  const { input, output } = creditedStream(host);
  output.resume();
  const ended = new Promise((resolve) => output.once("end", resolve));
  machine.destroy();
  await ended;
  await new Promise((resolve) => input.write("too late", resolve));
  expect(output.errored).toBeNull();
});
