import { createServer, type Server } from "node:http";
import { once } from "node:events";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { FORWARD_HEADER, FORWARD_PATH, PieceReader } from "../../src/cluster/forward-connection.ts";
import { type Envelope, ForwardSeal } from "../../src/cluster/forward-seal.ts";
import { storedNameOf } from "../../src/cluster/session-state.ts";
import { SECRET, token } from "../integration/governance-lab.ts";
import type { HttpServer } from "../integration/harness.ts";
import { BOTH, EventReader, type HttpAnswer, postJson } from "../integration/http-client.ts";
import { CLUSTER_KEY, SERVICES_MISSING, type Services, startServices } from "../services/cluster.ts";

// Databases and servers take their time on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const CONFIG = {
  auth: { enabled: true, jwt: { secret: SECRET } },
  governance: { defaults: { callsPerMinute: 100_000, callsPerDay: 0, concurrency: 0 } },
};
const PING = { jsonrpc: "2.0", id: 1, method: "ping" };
const VERSION = "2025-11-25";

/** What somebody has in hand who sends requests to a session. */
interface Hand {
  readonly token: string;
  readonly session: string;
}

function headersOf({ token: text, session }: Hand): Record<string, string> {
  return {
    accept: BOTH,
    authorization: `Bearer ${text}`,
    "mcp-session-id": session,
    "mcp-protocol-version": VERSION,
  };
}

describe.skipIf(SERVICES_MISSING !== undefined)(
  `sessions of several servers${SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`}`,
  () => {
    const seal = new ForwardSeal(CLUSTER_KEY);
    let services: Services;
    let near: HttpServer;
    let home: HttpServer;
    let homeId: string;
    let ada: Hand;
    let mallory: Hand;
    let adasEvent: string;

    beforeAll(async () => {
      services = await startServices();
      near = await services.start({ config: CONFIG });
      home = await services.start({ config: CONFIG });
      homeId = String((await home.logged("joined the cluster"))["server"]);
      ada = await begin(home, "ada");
      mallory = await begin(home, "mallory", "owlclaw:admin");
      adasEvent = (await eventOf(home, ada)).id;
    });
    afterAll(async () => {
      await Promise.all([near.stop(), home.stop()]);
      await services.stop();
    });

    async function begin({ url }: HttpServer, subject: string, scope = ""): Promise<Hand> {
      const text = await token(subject, { scope });
      const params = { protocolVersion: VERSION, capabilities: {}, clientInfo: { name: "x", version: "1" } };
      const headers = { accept: BOTH, authorization: `Bearer ${text}` };
      const answer = await postJson(url, { jsonrpc: "2.0", id: 0, method: "initialize", params }, headers);
      return { token: text, session: answer.headers.get("mcp-session-id") ?? "" };
    }

    /** An event of the stream of its own that a session has. */
    async function eventOf({ url }: HttpServer, hand: Hand): Promise<{ readonly id: string }> {
      const stream = await EventReader.open(url, { headers: { ...headersOf(hand), accept: "text/event-stream" } });
      const params = { name: "announce", arguments: { list: "tools" } };
      await postJson(url, { jsonrpc: "2.0", id: 2, method: "tools/call", params }, headersOf(hand));
      const { id = "" } = await stream.event(({ data }) => data.includes("list_changed"));
      stream.close();
      return { id };
    }

    const ping = ({ url }: HttpServer, hand: Hand): Promise<HttpAnswer> => postJson(url, PING, headersOf(hand));

    async function said(
      { url }: HttpServer,
      hand: Hand,
      init: RequestInit & { lastEventId?: string },
    ): Promise<unknown> {
      const { lastEventId } = init;
      const resume = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
      const response = await fetch(url, {
        ...init,
        headers: { ...headersOf(hand), ...resume, "content-type": "application/json" },
      });
      const text = response.status === 200 ? "open" : await response.text();
      await response.body?.cancel().catch(() => undefined);
      return { status: response.status, text: text.replace(/"trace_?[iI]d":"[^"]*"/, "") };
    }

    test.each(["near", "home"] as const)("are their owner's alone, asked at the %s server", async (place) => {
      const server = place === "near" ? near : home;
      const stolen = { token: mallory.token, session: ada.session };
      const invented = { token: mallory.token, session: `${homeId}.${"A".repeat(32)}` };
      for (const init of [
        { method: "GET" },
        { method: "GET", lastEventId: adasEvent },
        { method: "DELETE" },
        { method: "POST", body: JSON.stringify(PING) },
      ]) {
        const answer = await said(server, stolen, init);
        expect(answer).toEqual(await said(server, invented, init));
        expect(answer).toMatchObject({ status: 404 });
      }
      expect((await ping(server, ada)).status).toBe(200);
    });

    test("an event of somebody else's stream resumes nothing, at any server", async () => {
      for (const server of [near, home])
        expect(await said(server, mallory, { method: "GET", lastEventId: adasEvent })).toMatchObject({
          status: 400,
          text: expect.stringContaining("there is no stream with this Last-Event-ID"),
        });
    });

    /** As another server would send it. */
    async function forward(
      change: Readonly<Record<string, unknown>>,
      { by = seal, envelope = seal.newEnvelope(homeId) }: { by?: ForwardSeal; envelope?: Envelope } = {},
    ): Promise<unknown> {
      const message = {
        kind: "session",
        endpoint: "mcp",
        method: "POST",
        sessionId: ada.session,
        headers: { accept: BOTH },
        traceId: "0".repeat(32),
        body: JSON.stringify(PING),
        authorization: `Bearer ${ada.token}`,
        ...change,
      };
      const response = await fetch(`${home.origin}${FORWARD_PATH}`, {
        method: "POST",
        headers: { [FORWARD_HEADER]: by.write(envelope), "content-type": "application/octet-stream" },
        body: by.seal(envelope, "call", JSON.stringify(message)),
      });
      if (response.status !== 200) return response.status;
      const pieces = new PieceReader(by, envelope).read(Buffer.from(await response.arrayBuffer()));
      return [...pieces].map((piece) => JSON.parse(piece) as unknown);
    }

    test("requests that are sent on need the key of the cluster, once for each", async () => {
      expect(await forward({})).toMatchObject([{ news: "head", status: 200 }, { news: "data" }, { value: null }]);
      expect(await forward({}, { by: new ForwardSeal("another key of at least thirty-two bytes") })).toBe(403);
      const envelope = seal.newEnvelope(homeId);
      expect(await forward({}, { envelope })).toHaveLength(3);
      expect(await forward({}, { envelope })).toBe(403);
      expect(await forward({}, { envelope: seal.newEnvelope("AAAAAAAAAAAA") })).toBe(403);
    });

    test.each<[string, () => Readonly<Record<string, unknown>>, string]>([
      ["without a token", () => ({ authorization: undefined }), "unauthorized"],
      ["with a token of rubbish", () => ({ authorization: "Bearer x" }), "unauthorized"],
      ["with somebody else's token", () => ({ authorization: `Bearer ${mallory.token}` }), "session_not_found"],
      ["for a session that never was", () => ({ sessionId: `${homeId}.${"A".repeat(32)}` }), "session_not_found"],
      ["for a stream that never was", () => ({ endpoint: "sse" }), "session_not_found"],
      ["with a principal of its own", () => ({ principal: "ada" }), "invalid_request"],
    ])("even with the key, one %s opens nothing", async (_name, change, kind) => {
      expect(await forward(change())).toMatchObject([{ error: { kind } }]);
    });

    test("a stream ends with its token, at the server with the session too", async () => {
      const { session } = await begin(home, "ada");
      const brief = await new SignJWT({})
        .setProtectedHeader({ alg: "HS256" })
        .setSubject("ada")
        .setIssuedAt()
        .setExpirationTime("3s")
        .sign(Buffer.from(SECRET));
      const listening = (text: string): Promise<EventReader> =>
        EventReader.open(near.url, {
          headers: { ...headersOf({ token: text, session }), accept: "text/event-stream" },
        });
      const stream = await listening(brief);
      expect(stream.response.status).toBe(200);
      await stream.ended();
      // There is one stream for a session: the next one is let in when nobody reads the first.
      await expect
        .poll(
          async () => {
            const next = await listening(ada.token);
            next.close();
            return next.response.status;
          },
          { timeout: 60_000 },
        )
        .toBe(200);
    });

    test("a place that somebody has put into the database gets nothing that it can read, and answers nothing", async () => {
      const seen: Buffer[] = [];
      const rogue: Server = createServer((request, response) => {
        request.on("data", (chunk: Buffer) => seen.push(chunk));
        request.on("end", () => response.end(JSON.stringify({ value: null })));
      }).listen(0, "127.0.0.1");
      await once(rogue, "listening");
      const { port } = rogue.address() as { port: number };
      const name = "AAAAAAAAAAAA";
      services.postgres.sql(
        `INSERT INTO owlclaw_servers VALUES ('${name}', 'http://127.0.0.1:${port}', now() + INTERVAL '1 hour')`,
      );
      const answer = await ping(near, { ...ada, session: `${name}.${"A".repeat(32)}` });
      expect(answer.status).toBe(409);
      expect(seen).not.toHaveLength(0);
      expect(Buffer.concat(seen).toString("latin1")).not.toContain(ada.token);
      services.postgres.sql(`DELETE FROM owlclaw_servers WHERE id = '${name}'`);
      rogue.close();
    });

    test("of a server that is gone go to their owner, whole, and to nobody else", async () => {
      const lost = await services.start({ config: CONFIG });
      const hands = await Promise.all([begin(lost, "ada"), begin(lost, "ada"), begin(lost, "mallory")]);
      const [kept, forged, hers] = hands;
      const { id } = await eventOf(lost, kept);
      await eventOf(lost, forged);
      const keyOf = ({ session }: Hand): string => storedNameOf(session);
      // Somebody who writes to the database puts a session of her own into the place of another's.
      services.postgres.sql(`UPDATE owlclaw_sessions SET state = (SELECT state FROM owlclaw_sessions
        WHERE key = '${keyOf(hers)}') WHERE key = '${keyOf(forged)}'`);
      const streams = `SELECT count(*) FROM owlclaw_session_streams WHERE session = '${keyOf(kept)}'`;
      await expect.poll(() => services.postgres.sql(streams), { timeout: 60_000 }).toBe("1");
      lost.child.kill("SIGKILL");
      await lost.exit();
      const stolen = { token: mallory.token, session: kept.session };
      expect((await ping(near, stolen)).status).toBe(404);
      expect((await ping(home, { token: mallory.token, session: forged.session })).status).toBe(404);
      expect((await ping(home, forged)).status).toBe(404);
      // She asked first, and nothing has changed hands.
      expect((await ping(near, kept)).status).toBe(200);
      expect((await ping(home, stolen)).status).toBe(404);
      expect(await said(home, stolen, { method: "GET", lastEventId: id })).toMatchObject({ status: 404 });
      expect(await said(home, kept, { method: "GET", lastEventId: id })).toMatchObject({ status: 200 });
    });
  },
);
