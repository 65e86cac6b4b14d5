import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  callTool,
  EventReader,
  eventually,
  modernRequest,
  openResponse,
  openSession,
  rpc,
  send,
} from "./http-client.ts";
import { HANDLERS, type HttpServerProcess, spawnServer, startHttp } from "./server.ts";

const MEGABYTE = 1024 * 1024;

interface Vitals {
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly sockets: number;
}

let server: HttpServerProcess;
let origin: string;

beforeAll(async () => {
  server = await startHttp({
    nodeArgs: ["--expose-gc"],
    config: {
      // The tool that tells the vitals must tell those of the server itself.
      handlers: { paths: [HANDLERS], isolation: "none" },
      tools: { maxResultChars: 40_000_000 },
      http: { sessionIdleSeconds: 3 },
      logging: { level: "info" },
    },
  });
  ({ origin } = server);
});
afterAll(() => server.stop());

async function vitals(): Promise<Vitals> {
  return (await callTool(origin, "vitals")).json.result.structuredContent;
}

async function sessions(): Promise<number> {
  return (await send(`${origin}/mcp`)).json.sessions;
}

async function holdStates(prefix: string): Promise<string[]> {
  const { holds } = (await callTool(origin, "held")).json.result.structuredContent;
  return Object.entries(holds)
    .filter(([key]) => key.startsWith(prefix))
    .map(([, state]) => String(state));
}

/** A client that sends a request and then reads nothing at all. */
function sendAndStall(body: string, headers: Record<string, string> = {}): Socket {
  const socket = connect(server.port, "127.0.0.1");
  const lines = Object.entries({ "content-type": "application/json", ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.on("error", () => undefined);
  socket.write(
    `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${lines.join("")}Content-Length: ${body.length}\r\n\r\n${body}`,
  );
  return socket;
}

function toolCall(name: string, args: object, id: number | string = 1): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } });
}

/** Reads what is there to the end. */
async function drain(socket: Socket): Promise<{ bytes: number; tail: string }> {
  let bytes = 0;
  let tail = "";
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    tail = (tail + chunk.toString("latin1")).slice(-2000);
  });
  if (!socket.destroyed) await once(socket, "close");
  return { bytes, tail };
}

describe("a client that does not read", () => {
  test("a huge result holds up nobody else, and its memory comes back", async () => {
    const before = await vitals();
    const stalled = Array.from({ length: 8 }, () => sendAndStall(toolCall("big", { chars: 8 * MEGABYTE })));
    await eventually(vitals, ({ sockets }) => sockets >= before.sockets + stalled.length);
    for (let call = 0; call < 20; call++) {
      expect((await callTool(origin, "echo", { text: "quick" })).json.result.content[0].text).toBe("quick");
    }
    for (const socket of stalled) socket.destroy();
    const after = await eventually(vitals, ({ heapBytes }) => heapBytes < before.heapBytes + 8 * MEGABYTE);
    expect(after.sockets).toBeLessThanOrEqual(before.sockets + 1);
  });

  test("an endless stream is cut off before it fills the memory", async () => {
    const headers = await openSession(origin, { version: "2025-06-18" });
    await rpc(origin, "logging/setLevel", { level: "debug" }, { headers });
    const before = await vitals();
    const messages = 2000;
    const chars = 64 * 1024;
    const socket = sendAndStall(toolCall("chatter", { messages, chars }, "flood"), headers);
    let highest = 0;
    const states = async (): Promise<Vitals> => {
      const now = await vitals();
      highest = Math.max(highest, now.rssBytes - before.rssBytes);
      return now;
    };
    // The connection is gone from the server's side while the client still has not read a byte.
    await eventually(states, ({ sockets }) => sockets <= before.sockets);
    const { bytes, tail } = await drain(socket);
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan((messages * chars) / 2);
    expect(tail).not.toContain("said everything");
    expect(highest).toBeLessThan(100 * MEGABYTE);
  });
});

describe("a client on stdio that does not read", () => {
  test("gets no more of its requests served than fit, and all of them when it reads on", async () => {
    const process = await spawnServer({ transport: "stdio", config: { tools: { maxResultChars: 400_000 } } });
    try {
      const { stdin, stdout } = process.child;
      if (stdin === null || stdout === null) throw new Error("the server was started without pipes");
      const calls = 2500;
      const chars = 200_000;
      for (let id = 1; id <= calls; id++) stdin.write(`${toolCall("big", { chars }, id)}\n`);
      // It has taken what it will take when its side of the pipe does not move any more. Requests may wait; answers may not pile up.
      await process.logged("server started");
      let steady = 0;
      let left = stdin.writableLength;
      const isSteady = (length: number): boolean => {
        steady = length === left ? steady + 1 : 0;
        left = length;
        return steady > 20;
      };
      await eventually(() => stdin.writableLength, isSteady);
      expect(peakBytes(process.child.pid)).toBeLessThan(0.5 * calls * chars);
      const answers = createInterface({ input: stdout });
      let answered = 0;
      for await (const line of answers) {
        expect(line.length).toBeGreaterThan(chars);
        if (++answered === calls) break;
      }
      expect(answered).toBe(calls);
    } finally {
      await process.stop();
    }
  }, 240_000);
});

/** The most memory that a process has ever had, as the kernel saw it. */
function peakBytes(pid: number | undefined): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) * 1024;
}

/** The long run has two hundred clients. */
const EACH = process.env["OWLCLAW_TEST_LONG"] === "1" ? 50 : 25;

describe(`${4 * EACH} clients that vanish in the middle of a call`, () => {
  const DOORS: Record<string, (key: string) => Promise<{ destroy(): unknown }>> = {
    plain: async (key) => sendAndStall(toolCall("hold", { key })),
    session: async (key) => {
      const headers = await openSession(origin, { version: "2025-06-18" });
      return sendAndStall(toolCall("hold", { key }), headers);
    },
    modern: async (key) => {
      const { params, headers } = modernRequest("tools/call", { name: "hold", arguments: { key } });
      return sendAndStall(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }), headers);
    },
    sse: async (key) => {
      const stream = await openResponse(`${origin}/mcp/sse`);
      const { data } = await new EventReader(stream).find(({ event }) => event === "endpoint");
      await send(`${origin}${data}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: toolCall("hold", { key }),
      });
      return stream;
    },
  };

  async function round(): Promise<Vitals> {
    const clients: { destroy(): unknown }[] = [];
    for (const [door, open] of Object.entries(DOORS)) {
      clients.push(...(await Promise.all(Array.from({ length: EACH }, (_, index) => open(`gone ${door} ${index}`)))));
    }
    await eventually(
      () => holdStates("gone "),
      (states) => states.length === 4 * EACH && states.every((state) => state === "waiting"),
    );
    for (const client of clients) client.destroy();
    await eventually(
      () => holdStates("gone "),
      (states) => states.every((state) => state === "cancelled"),
    );
    await eventually(sessions, (count) => count === 0);
    return vitals();
  }

  test("[004-R3.8] leave nothing behind: calls are cancelled, streams and sessions end, memory stays where it is", async () => {
    const before = await vitals();
    await round();
    const second = await round();
    const fourth = await round().then(round);
    expect(fourth.sockets).toBeLessThanOrEqual(before.sockets + 1);
    expect(fourth.heapBytes).toBeLessThan(second.heapBytes + 2 * MEGABYTE);
    expect(server.log()).not.toContain('"level":"error"');
  });
});
