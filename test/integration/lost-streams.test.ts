import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { configSchema } from "../../src/config/schema.ts";
import { assemble, type Assembly } from "../../src/server/assemble.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { type HttpListener, openHttpListener } from "../../src/transport/http/http-listener.ts";
import { HttpTransport } from "../../src/transport/http/http-transport.ts";
import { callTool, EventReader, openResponse, openSession } from "../escape/http-client.ts";

const HANDLERS = join(import.meta.dirname, "../fixtures/handlers");
const WINDOW_MS = 10_000;

let folder: string;
let assembly: Assembly;
let transport: HttpTransport;
let listener: HttpListener;
let origin: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "owlclaw-test-"));
  const config = configSchema.parse({
    transport: "http",
    http: { host: "127.0.0.1", port: 0 },
    handlers: { paths: [HANDLERS] },
    sandbox: { enabled: false, root: folder },
  });
  assembly = await assemble({ config, logger: SILENT_LOGGER });
  const authenticator = await createAuthenticator({ auth: config.auth, logger: SILENT_LOGGER });
  listener = await openHttpListener(config.http, SILENT_LOGGER);
  transport = new HttpTransport({ mcp: assembly.mcp, config, authenticator, listener });
  origin = transport.serve();
});

afterEach(() => {
  vi.useRealTimers();
});

afterAll(async () => {
  await transport.drain(0);
  await assembly.close();
  await listener.close();
  await rm(folder, { recursive: true, force: true });
});

interface HeldCall {
  readonly headers: Record<string, string>;
  readonly response: IncomingMessage;
  readonly events: EventReader;
  readonly lastEventId: string;
}

/** A call that has said something on its stream and goes on. From here on, time stands still unless the test moves it. */
async function holdCall(label: string): Promise<HeldCall> {
  const headers = await openSession(origin);
  const params = { name: "hold", arguments: { label, progress: true }, _meta: { progressToken: 1 } };
  const response = await openResponse(`${origin}/mcp`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params }),
  });
  response.on("error", () => undefined);
  const events = new EventReader(response);
  const { id = "" } = await events.find(({ data }) => data.includes("notifications/progress"));
  await until(async () => (await observed(label)).started);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  return { headers, response, events, lastEventId: id };
}

async function resume({ headers, lastEventId }: HeldCall): Promise<HeldCall["response"]> {
  const response = await openResponse(`${origin}/mcp`, {
    headers: { ...headers, accept: "text/event-stream", "last-event-id": lastEventId },
  });
  expect(response.statusCode).toBe(200);
  return response.on("error", () => undefined);
}

/** Hangs up, and waits until the server has noticed: then it counts the time. */
async function lose(response: IncomingMessage): Promise<void> {
  const before = vi.getTimerCount();
  response.destroy();
  await until(() => vi.getTimerCount() > before);
}

async function observed(label: string): Promise<{ started: boolean; aborted: boolean; finished: boolean }> {
  return (await callTool(origin, "observe", { label })).json.result.structuredContent;
}

/** Asks again after each turn of the event loop, which time that stands still does not hold up. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve));
}

test("a lost stream of a session keeps its call for ten seconds; then the call is cancelled", async () => {
  const { response } = await holdCall("lost");
  await lose(response);
  vi.advanceTimersByTime(WINDOW_MS - 1);
  expect(await observed("lost")).toEqual({ started: true, aborted: false, finished: false });
  vi.advanceTimersByTime(1);
  await until(async () => (await observed("lost")).aborted);
});

test("a client that comes back in time keeps its call, and gets the answer however late", async () => {
  const call = await holdCall("resumed");
  await lose(call.response);
  vi.advanceTimersByTime(WINDOW_MS - 1);
  const events = new EventReader(await resume(call));
  vi.advanceTimersByTime(10 * WINDOW_MS);
  expect(await observed("resumed")).toEqual({ started: true, aborted: false, finished: false });
  await callTool(origin, "release", { label: "resumed" });
  const answer = await events.find(({ data }) => data.includes('"id":7'));
  expect(JSON.parse(answer.data).result.content[0].text).toBe("released resumed");
});

test("a stream that was resumed and is lost again has its ten seconds again, and no more", async () => {
  const call = await holdCall("twice");
  await lose(call.response);
  vi.advanceTimersByTime(WINDOW_MS - 1);
  await lose(await resume(call));
  vi.advanceTimersByTime(WINDOW_MS - 1);
  expect(await observed("twice")).toEqual({ started: true, aborted: false, finished: false });
  vi.advanceTimersByTime(1);
  await until(async () => (await observed("twice")).aborted);
});
