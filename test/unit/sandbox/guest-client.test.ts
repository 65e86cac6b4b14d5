import { once } from "node:events";
import { duplexPair, type Duplex } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Handlers, ServerConnection } from "../../../guest/connection.ts";
import { Failure } from "../../../guest/failure.ts";
import { GuestClient, GuestLost } from "../../../src/sandbox/guest-client.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";

const NO_LIMIT = { timeoutMs: 60_000 };

interface Opened {
  readonly client: GuestClient;
  /** The other end of the stream, for a guest that user code has taken over. */
  readonly inside: Duplex;
}

function open(maxFrameBytes = 100_000): Opened {
  const [host, inside] = duplexPair();
  const client = new GuestClient({ stream: host, maxFrameBytes, logger: SILENT_LOGGER });
  onTestFinished(() => client.fail("the test is over"));
  return { client, inside };
}

function serve(inside: Duplex, handlers: Partial<Handlers>): ServerConnection {
  const guest = new ServerConnection(inside, inside);
  guest.serve(handlers);
  return guest;
}

function send(inside: Duplex, message: unknown): void {
  const body = JSON.stringify(message);
  inside.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

async function firstRequest(inside: Duplex): Promise<{ id: string; method: string }> {
  let text = "";
  for await (const chunk of inside) {
    text += String(chunk);
    if (text.endsWith("}")) break;
  }
  return JSON.parse(text.slice(text.indexOf("{"))) as { id: string; method: string };
}

test("an answer in the agreed form comes back", async () => {
  const { client, inside } = open();
  serve(inside, { "guest.hello": () => ({ version: "1", languages: ["python"] }) });
  expect(await client.request("guest.hello", {}, NO_LIMIT)).toEqual({ version: "1", languages: ["python"] });
});

test("an answer with more than was agreed ends the connection", async () => {
  const { client, inside } = open();
  const answer = { version: "1", languages: ["python"], extra: 1 } as const;
  serve(inside, { "guest.hello": () => answer });
  await expect(client.request("guest.hello", {}, NO_LIMIT)).rejects.toThrow(
    "its answer to guest.hello is not as agreed",
  );
  expect(client.isLost).toBe(true);
});

test("request ids are random", async () => {
  const ids = await Promise.all(
    [1, 2].map(async () => {
      const { client, inside } = open();
      client.request("guest.hello", {}, NO_LIMIT).catch(() => undefined);
      return (await firstRequest(inside)).id;
    }),
  );
  expect(ids[0]).toMatch(/^[\w-]{20}$/);
  expect(ids[0]).not.toBe(ids[1]);
});

test.each([
  ["an answer to nothing that was asked", { jsonrpc: "2.0", id: 1, result: {} }],
  ["an answer with a guessed id", { jsonrpc: "2.0", id: "AAAAAAAAAAAAAAAAAAAA", result: {} }],
  ["a request to the host", { jsonrpc: "2.0", id: 1, method: "sandbox.escape", params: {} }],
  ["a notification that no guest sends", { jsonrpc: "2.0", method: "$/setTrace", params: { value: "verbose" } }],
  ["an output that is not as agreed", { jsonrpc: "2.0", method: "output", params: { callId: 7 } }],
  ["something that is no message", [1, 2, 3]],
  ["null", null],
])("%s ends the connection and every request on it", async (_what, message) => {
  const { client, inside } = open();
  const waiting = client.request("guest.hello", {}, NO_LIMIT);
  send(inside, message);
  await expect(waiting).rejects.toThrow(GuestLost);
  expect(await client.lost).toMatch(/malformed frame/);
  expect(client.hasViolated).toBe(true);
});

test("a guest that ends in the middle of a frame has violated nothing", async () => {
  const { client, inside } = open();
  inside.end("Content-Length: 3\r\n\r\n{");
  expect(await client.lost).toBe("its stream ended in the middle of a frame");
  expect(client.hasViolated).toBe(false);
});

test("bytes that are not JSON end the connection", async () => {
  const { client, inside } = open();
  inside.write("Content-Length: 3\r\n\r\n{]}");
  expect(await client.lost).toMatch(/malformed frame/);
});

test("a frame over the limit ends the connection before its body is read", async () => {
  const { client, inside } = open(1024);
  inside.write("Content-Length: 1025\r\n\r\n");
  expect(await client.lost).toBe("malformed frame: 1025 bytes are announced, and guest.maxFrameBytes is 1024");
});

test("an answer that breaks the schema ends the connection", async () => {
  const { client, inside } = open();
  serve(inside, { "file.write": () => ({ path: 1 }) as never });
  const params = { path: "a", content: "", encoding: "utf-8", mode: "overwrite" } as const;
  await expect(client.request("file.write", params, NO_LIMIT)).rejects.toThrow(
    "its answer to file.write is not as agreed",
  );
  expect(client.isLost).toBe(true);
});

test("a failure that the caller can repair keeps its reason and its hint, cut to a bearable length", async () => {
  const { client, inside } = open();
  serve(inside, {
    "file.list": () => {
      throw new Failure("not_found", "m".repeat(9000), "look elsewhere");
    },
  });
  const params = { path: ".", recursive: false, includeHidden: false, maxEntries: 1 };
  await expect(client.request("file.list", params, NO_LIMIT)).rejects.toMatchObject({
    kind: "tool_failure",
    message: "m".repeat(2000),
    hint: "look elsewhere",
    facts: { reason: "not_found" },
  });
  expect(client.isLost).toBe(false);
});

test("the guest is told to stop when the caller goes away, and its answer still counts", async () => {
  const { client, inside } = open();
  const abort = new AbortController();
  serve(inside, {
    "shell.output": async (_params, signal) => {
      abort.abort();
      if (!signal.aborted) await once(signal, "abort");
      return { text: "so far", cursor: 6, skippedChars: 0, isRunning: true, exitCode: null, signal: null };
    },
  });
  const params = { processId: "1", cursor: 0, maxChars: 10, waitMs: 0 };
  const answer = await client.request("shell.output", params, { ...NO_LIMIT, signal: abort.signal });
  expect(answer.text).toBe("so far");
});

test("output is routed by call, and output of no call is dropped", async () => {
  const { client, inside } = open();
  const heard: string[] = [];
  const { callId, stop } = client.listen(({ text }) => heard.push(text));
  const guest = serve(inside, {
    "guest.hello": () => {
      guest.sendOutput({ callId, stream: "stdout", text: "mine" });
      guest.sendOutput({ callId: "another", stream: "stdout", text: "not mine" });
      return { version: "1", languages: [] };
    },
  });
  await client.request("guest.hello", {}, NO_LIMIT);
  stop();
  expect(heard).toEqual(["mine"]);
});

test("a request whose caller is gone already is not sent", async () => {
  const { client, inside } = open();
  serve(inside, { "guest.hello": () => Promise.reject(new Error("it was sent")) });
  await expect(client.request("guest.hello", {}, { ...NO_LIMIT, signal: AbortSignal.abort() })).rejects.toMatchObject({
    kind: "cancelled",
  });
});

test("after a flood of frames the sandbox waits, not the server", async () => {
  // The guest earns the right to send with time: on a slow machine a flood would be no flood.
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { client, inside } = open(32 * 1024 * 1024);
  let chars = 0;
  const { callId } = client.listen(({ text }) => (chars += text.length), Number.POSITIVE_INFINITY);
  const text = "x".repeat(200_000);
  let isTaken = true;
  for (let sent = 0; sent < 300 && isTaken; sent += 1) {
    send(inside, { jsonrpc: "2.0", method: "output", params: { callId, stream: "stdout", text } });
    await new Promise((resolve) => setImmediate(resolve));
    isTaken = !inside.writableNeedDrain;
  }
  expect(isTaken).toBe(false);
  expect(chars).toBeGreaterThan(10_000_000);
  expect(chars).toBeLessThan(20_000_000);
  vi.advanceTimersByTime(60_000);
  await vi.waitFor(() => expect(inside.writableNeedDrain).toBe(false));
});
