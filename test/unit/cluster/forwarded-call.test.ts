import { createServer, type Server } from "node:http";
import { once } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { Changes, type Tool } from "../../../src/capability/registry.ts";
import type { CallContext } from "../../../src/capability/context.ts";
import { compileTool } from "../../../src/capability/define-tool.ts";
import { ForwardReceiver } from "../../../src/cluster/forward-receiver.ts";
import type { ForwardMessage, SandboxMessage } from "../../../src/cluster/forward-message.ts";
import { ForwardSeal } from "../../../src/cluster/forward-seal.ts";
import { Forwarder } from "../../../src/cluster/forwarder.ts";
import { ServerRegistry } from "../../../src/cluster/server-registry.ts";
import { type Call, contextOf, EgressMeter } from "../../../src/call/call.ts";
import { Lifeline } from "../../../src/call/lifeline.ts";
import { silentConversation } from "../../../src/mcp/conversations/silent.ts";
import { SandboxOwners } from "../../../src/cluster/sandbox-owners.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { ForwardEndpoint } from "../../../src/transport/http/forward-endpoint.ts";

// Two servers and a line between them take their time on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const HOME = "AAAAAAAAAAAA";
const SESSION = `${HOME}.${"s".repeat(32)}`;

const open: { close(): void }[] = [];
afterEach(() => open.splice(0).forEach((each) => each.close()));

type Run = (context: CallContext) => Promise<object>;

function sandboxMessage(message: ForwardMessage): SandboxMessage {
  if (message.kind === "tool" || message.kind === "file") return message;
  throw new Error("it is not for a sandbox");
}

/** Two servers, of which the second has the sandbox and runs what it is given there. */
async function twoServers(run: Run): Promise<{ readonly tool: Tool; readonly door: Server }> {
  const seal = new ForwardSeal("the servers of these tests share this key of theirs");
  const changes = new Changes();
  const timeoutMs = 20_000;
  const places = new Map<string, string>();
  const database = {
    putServer: async (id: string, url: string) => {
      places.set(id, url);
      return "";
    },
    findServer: async (id: string) => places.get(id),
    removeServer: async (id: string) => void places.delete(id),
  };
  const registry = new ServerRegistry({ database, serverId: HOME, leaseMs: 60_000 });
  const forwarder = new Forwarder({ seal, registry, logger: SILENT_LOGGER });
  const near = new SandboxOwners({ serverId: "BBBBBBBBBBBB", forwarder, changes, timeoutMs });
  const home = new SandboxOwners({ serverId: HOME, forwarder, changes, timeoutMs });
  const endpoint = new ForwardEndpoint({
    receiver: new ForwardReceiver({
      seal,
      serverId: HOME,
      run: (message, line) => home.run(sandboxMessage(message), line),
    }),
    maxBodyBytes: 1_000_000,
  });
  const door = createServer((request, response) => void endpoint.post(request, response)).listen(0, "127.0.0.1");
  await once(door, "listening");
  await registry.announce(`http://127.0.0.1:${(door.address() as { port: number }).port}`);
  open.push(forwarder, { close: () => door.closeAllConnections() }, { close: () => void door.close() });
  open.push({ close: () => void registry.leave() });
  const compiled = (there: Run): Tool =>
    compileTool({
      name: "work",
      description: "Works.",
      input: { type: "object", properties: { session_id: { type: "string" } } },
      run: (_input, context) => there(context),
    });
  home.tool(compiled(run));
  const tool = near.tool(compiled(() => Promise.reject(new Error("this server has no sandbox"))));
  return { tool, door };
}

interface Heard {
  readonly progress: unknown[];
  readonly log: unknown[];
}

/** A call at the first server, and what it is charged with. */
function callHere(label?: string): { call: Call; life: Lifeline; egress: EgressMeter; heard: Heard } {
  const heard: Heard = { progress: [], log: [] };
  const egress = new EgressMeter();
  const life = new Lifeline();
  const call: Call = {
    caller: {
      principal: { id: "ada", scopes: ["owlclaw:admin"], claims: { level: 3 } },
      label,
      transport: "http",
      protocolVersion: "2025-11-25",
      sessionId: undefined,
    },
    traceId: "0".repeat(32),
    life,
    conversation: {
      ...silentConversation(new Changes()),
      progress: (done, options) => void heard.progress.push([done, options]),
      log: (level, data, logger) => void heard.log.push([level, data, logger]),
    },
    meter: (used) => egress.add(used),
  };
  return { call, life, egress, heard };
}

const run = (tool: Tool, call: Call, life: Lifeline): Promise<unknown> =>
  Promise.resolve(tool.run({ session_id: SESSION }, contextOf(call, life)));

test("what the sandbox moved is on the bill of the server that governs the call, once", async () => {
  const used = { bytesMoved: 5000 };
  const { tool } = await twoServers(async (context) => {
    context.meter?.(used);
    used.bytesMoved += 1234;
    return { ok: true };
  });
  const { call, life, egress } = callHere();
  expect(await run(tool, call, life)).toEqual({ ok: true });
  // What it had moved before the call is nobody's of this call.
  expect(egress.bytes()).toBe(1234);
  used.bytesMoved += 99;
  expect(egress.bytes()).toBe(1234);
});

test("a call that fails there pays for what it moved before", async () => {
  const { tool } = await twoServers(async (context) => {
    const used = { bytesMoved: 0 };
    context.meter?.(used);
    used.bytesMoved = 77;
    throw new Error("broken");
  });
  const { call, life, egress } = callHere();
  await expect(run(tool, call, life)).rejects.toMatchObject({ kind: "execution_error" });
  expect(egress.bytes()).toBe(77);
});

test.each(["the client goes", "the line is cut"])("when %s, what was moved so far is paid", async (how) => {
  let ended: Promise<void> | undefined;
  const { tool, door } = await twoServers((context) => {
    const used = { bytesMoved: 0 };
    context.meter?.(used);
    used.bytesMoved = 500;
    ended = new Promise((resolve) => context.signal.addEventListener("abort", () => resolve()));
    return ended.then(() => ({}));
  });
  const { call, life, egress } = callHere();
  const answer = run(tool, call, life);
  answer.catch(() => undefined);
  await expect.poll(() => egress.bytes(), { timeout: 30_000 }).toBe(500);
  if (how === "the client goes") life.end();
  else door.closeAllConnections();
  await expect(answer).rejects.toMatchObject({ kind: how === "the client goes" ? "cancelled" : "session_elsewhere" });
  // The other server has heard of it too.
  await ended;
  expect(egress.bytes()).toBe(500);
});

test("progress and log messages come while the call runs, in their order, and its label goes along", async () => {
  let goOn = (): void => undefined;
  const heardIt = new Promise<void>((resolve) => (goOn = resolve));
  const { tool } = await twoServers(async (context) => {
    context.progress(1, { total: 3, message: "one" });
    context.progress(2);
    context.log("warning", { disk: "full" }, "disk");
    await heardIt;
    return { label: context.label, principal: context.principal };
  });
  const { call, life, heard } = callHere("nightly");
  const answer = run(tool, call, life);
  await expect.poll(() => heard.log, { timeout: 30_000 }).toEqual([["warning", { disk: "full" }, "disk"]]);
  expect(heard.progress).toEqual([
    [1, { total: 3, message: "one" }],
    [2, {}],
  ]);
  goOn();
  // Nothing that could open anything travels.
  expect(await answer).toEqual({ label: "nightly", principal: { id: "ada", scopes: [], claims: {} } });
});

test("a flood of messages that nobody takes is dropped; the answer and the bill are not", async () => {
  const { tool } = await twoServers(async (context) => {
    const used = { bytesMoved: 0 };
    context.meter?.(used);
    for (let done = 1; done <= 2000; done += 1) context.progress(done, { message: "x".repeat(10_000) });
    used.bytesMoved = 9;
    return { ok: true };
  });
  const { call, life, egress, heard } = callHere();
  expect(await run(tool, call, life)).toEqual({ ok: true });
  expect(heard.progress.length).toBeGreaterThan(0);
  expect(heard.progress.length).toBeLessThan(2000);
  expect(egress.bytes()).toBe(9);
});
