import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, connectHttp, makePlace, type Place, Server } from "../e2e/sandbox-client.ts";
import { AUTH, PageOperator, PageStream, token } from "../escape/dashboard-lab.ts";
import { until } from "./harness.ts";

let place: Place;
let server: Server;
let origin: string;
let ada: Client;
let root: PageOperator;
let other: PageOperator;

beforeAll(async () => {
  place = makePlace();
  server = new Server(place, AUTH);
  origin = new URL(await server.url()).origin;
  ada = await connectHttp(`${origin}/mcp`, { authorization: `Bearer ${await token("ada")}` });
  [root, other] = [await PageOperator.byToken(origin, "root"), await PageOperator.byToken(origin, "other")];
});

afterAll(() => server.stop());

async function newSandbox(): Promise<{ readonly sessionId: string; readonly name: string }> {
  const before = new Set((await root.get("now")).json.sandboxes.map(({ id }: { id: string }) => id));
  const { structuredContent } = await call(ada, "sandbox_create");
  const { json } = await root.get("now");
  const name = json.sandboxes.map(({ id }: { id: string }) => id).find((id: string) => !before.has(id));
  return { sessionId: String(structuredContent?.["session_id"]), name };
}

describe("now", () => {
  test("shows sandboxes with what they use, calls under way and the health of what the server needs", async () => {
    const { sessionId, name } = await newSandbox();
    const running = call(ada, "shell_exec", {
      command: "until [ -e off ]; do sleep 0.05; done",
      session_id: sessionId,
    });
    const { json } = await until(
      () => root.get("now"),
      ({ json: now }) => now.calls.length === 1 && now.calls[0].stage === "running" && now.calls[0].sandbox === name,
    );
    expect(json).toMatchObject({
      version: expect.any(String),
      calls: [{ principal: "ada", tool: "shell_exec", sandbox: name, startedAt: expect.stringMatching(/Z$/) }],
      queue: { running: 1, waiting: 0, alive: 1 },
      health: { status: "ok", checks: { store: { status: "ok" } } },
      approvals: [],
      paused: [],
    });
    expect(json.sandboxes).toEqual([
      expect.objectContaining({ id: name, owner: "ada", state: "busy", runtime: "bubblewrap", running: "shell_exec" }),
    ]);
    expect(json.sandboxes[0].memoryBytes).toBeGreaterThan(0);
    expect(JSON.stringify(json)).not.toContain(sessionId);
    expect((await root.get(`ledger?sandbox=${json.sandboxes[0].ledgerId}`)).json.rows).toEqual([
      expect.objectContaining({ tool: "sandbox_create", client: "ada" }),
    ]);
    await call(ada, "shell_exec", { command: "touch off", session_id: sessionId });
    await running;
  });
});

describe("the live stream", () => {
  test("tells two operators the whole first and then what changed, without being asked", async () => {
    const streams = [await PageStream.open(root, "live"), await PageStream.open(other, "live")];
    for (const stream of streams) expect(stream.response.headers["content-type"]).toBe("text/event-stream");
    for (const stream of streams) await stream.find(({ event }) => event === "now");
    const { name } = await newSandbox();
    for (const stream of streams) {
      const { data } = await stream.find(
        ({ event, data: change }) =>
          event === "change" && change.sandboxes?.some(({ id }: { id: string }) => id === name),
      );
      expect(data.version).toBeUndefined();
      expect(stream.events.filter(({ event }) => event === "now")).toHaveLength(1);
      stream.close();
    }
  });

  test("ends with the session of whoever looks, and for nobody else", async () => {
    const leaver = await PageOperator.byToken(origin, "leaver");
    const [leaving, staying] = [await PageStream.open(leaver, "live"), await PageStream.open(root, "live")];
    await leaving.find(({ event }) => event === "now");
    await leaver.post("logout");
    await leaving.ended();
    await newSandbox();
    expect(await staying.find(({ event }) => event === "change")).toBeDefined();
    staying.close();
  });
});
