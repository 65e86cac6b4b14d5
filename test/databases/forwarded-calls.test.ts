import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FORWARD_HEADER, FORWARD_PATH, PieceReader, PieceWriter } from "../../src/cluster/forward-connection.ts";
import { type Envelope, ForwardSeal, TOLERANCE_MS } from "../../src/cluster/forward-seal.ts";
import { call, SECRET, token } from "../integration/governance-lab.ts";
import { type HttpServer, startHttp } from "../integration/harness.ts";
import { CLUSTER_KEY, SERVICES_MISSING, type Services, startServices } from "../services/cluster.ts";

const CONFIG = {
  auth: { enabled: true, jwt: { secret: SECRET } },
  governance: { defaults: { callsPerMinute: 100_000, concurrency: 1000 } },
  sandbox: { enabled: true, pool: { size: 0 } },
};
const NOT_FOUND = "there is no sandbox with this session_id";

interface Seen {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Stands on the way between two servers. It sees everything and may change it. */
class Wiretap {
  readonly seen: Seen[] = [];
  target = "";
  change: (body: Buffer) => Buffer = (body) => body;
  forge: ((headers: IncomingHttpHeaders) => Buffer) | undefined;
  readonly #server = createServer((request, response) => void this.#pass(request, response));

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    this.seen.push({ headers: request.headers, body });
    if (this.forge !== undefined) return void response.end(this.forge(request.headers));
    const answer = await send(this.target, request.headers, this.change(body));
    response.writeHead(answer.status).end(answer.body);
  }

  async open(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

async function send(
  origin: string,
  headers: IncomingHttpHeaders | string | undefined,
  body: Uint8Array,
): Promise<{ readonly status: number; readonly body: Buffer }> {
  const envelope = typeof headers === "object" ? String(headers[FORWARD_HEADER]) : headers;
  const response = await fetch(`${origin}${FORWARD_PATH}`, {
    method: "POST",
    body,
    headers: {
      "content-type": "application/octet-stream",
      ...(envelope !== undefined && { [FORWARD_HEADER]: envelope }),
    },
  });
  return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
}

describe.skipIf(SERVICES_MISSING !== undefined)(
  `calls between servers${SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`}`,
  () => {
    const wire = new Wiretap();
    const seal = new ForwardSeal(CLUSTER_KEY);
    let services: Services;
    let near: HttpServer;
    let home: HttpServer;
    let homeId: string;
    let ada: { token: string };
    let mallory: { token: string };
    let sessionId: string;

    beforeAll(async () => {
      services = await startServices();
      const url = await wire.open();
      near = await services.start({ config: CONFIG });
      home = await services.start({ config: { ...CONFIG, cluster: { key: CLUSTER_KEY, url } } });
      wire.target = home.origin;
      homeId = String((await home.logged("joined the cluster"))["server"]);
      ada = { token: await token("ada") };
      mallory = { token: await token("mallory", { scope: "owlclaw:admin" }) };
      const { body } = await call(home.url, "code_run", { code: "x = 0" }, ada);
      sessionId = body.result?.["structuredContent"].session_id;
    });
    afterAll(async () => {
      wire.close();
      await Promise.all([near.stop(), home.stop()]);
      await services.stop();
    });

    const run = async (code: string, who = ada, server = near): Promise<string> => {
      const { body } = await call(server.url, "code_run", { code, session_id: sessionId }, who);
      return String(body.result?.["content"][0].text);
    };

    function message(change: Readonly<Record<string, unknown>> = {}): string {
      return JSON.stringify({
        kind: "tool",
        name: "code_run",
        input: { code: "x = 666", session_id: sessionId },
        principal: "ada",
        traceId: "0".repeat(32),
        protocolVersion: "2025-06-18",
        timeoutMs: 10_000,
        ...change,
      });
    }

    /** As somebody who has the key would send it. */
    async function forward(text: string, envelope: Envelope = seal.newEnvelope(homeId), by = seal): Promise<unknown> {
      const answer = await send(home.origin, by.write(envelope), by.seal(envelope, "call", text));
      if (answer.status !== 200) return answer.status;
      return JSON.parse([...new PieceReader(by, envelope).read(answer.body)].at(-1) ?? "");
    }

    test.each<[string, (envelope: Envelope) => string | undefined]>([
      ["no envelope", () => undefined],
      ["an envelope of rubbish", () => "v1 x"],
      [
        "the key of somebody else",
        (envelope) => new ForwardSeal("another key of at least thirty-two bytes").write(envelope),
      ],
      ["the name of another server", (envelope) => seal.write({ ...envelope, to: "AAAAAAAAAAAA" })],
      [
        "a signature of a moment ago",
        (envelope) => seal.write({ ...envelope, timeMs: Date.now() - TOLERANCE_MS - 1000 }),
      ],
      ["a signature of the future", (envelope) => seal.write({ ...envelope, timeMs: Date.now() + 10 * TOLERANCE_MS })],
      ["a time that was changed", (envelope) => seal.write(envelope).replace(/ \d+ /, ` ${Date.now() + 5} `)],
      ["an envelope sent twice in one", (envelope) => `${seal.write(envelope)}, ${seal.write(envelope)}`],
    ])("with %s are refused", async (_name, header) => {
      const envelope = seal.newEnvelope(homeId);
      const answer = await send(home.origin, header(envelope), seal.seal(envelope, "call", message()));
      expect(answer.status).toBe(403);
      expect(await run("x", ada, home)).toContain('"value":"0"');
    });

    test("are not read on the way, not changed, not repeated", async () => {
      wire.seen.length = 0;
      expect(await run("x = 'walls have ears'; x = 1; x")).toContain('"value":"1"');
      const [seen] = wire.seen;
      if (seen === undefined) throw new Error("it went this way");
      expect(seen.body.toString("latin1")).not.toContain("walls");
      await run("x += 1; x");
      const again = await send(home.origin, wire.seen[1]?.headers, wire.seen[1]?.body ?? Buffer.alloc(0));
      expect(again.status).toBe(403);
      expect(again.body.toString()).toContain("made before");
      expect(await run("x")).toContain('"value":"2"');
      wire.change = (body) => Buffer.from(body.map((byte, index) => (index === 9 ? byte ^ 1 : byte)));
      expect(await run("x = 3; x")).toContain("did not accept the call");
      wire.change = (body) => body;
      expect(await run("x")).toContain('"value":"2"');
      await run("x = 0");
    });

    test("are answered by the server with the sandbox, and by nobody in its place", async () => {
      const other = new ForwardSeal("another key of at least thirty-two bytes");
      wire.forge = () => Buffer.from(JSON.stringify({ value: { content: [{ type: "text", text: "pwned" }] } }));
      expect(await run("x")).not.toContain("pwned");
      wire.forge = () => new PieceWriter(other, other.newEnvelope(homeId)).write(JSON.stringify({ value: "pwned" }));
      expect(await run("x")).toContain("does not answer");
      // An answer to another question, sealed with the right key.
      wire.forge = () => new PieceWriter(seal, seal.newEnvelope(homeId)).write(JSON.stringify({ value: "pwned" }));
      expect(await run("x")).toContain("does not answer");
      wire.forge = undefined;
      expect(await run("x")).toContain('"value":"0"');
    });

    test("open no sandbox of another principal, operator or not, and the words are those of an id that never was", async () => {
      const stolen = await run("x", mallory);
      const invented = await call(
        near.url,
        "code_run",
        { code: "x", session_id: `${homeId}.${"A".repeat(32)}` },
        mallory,
      );
      expect(stolen).toContain(NOT_FOUND);
      expect(stolen).toBe(String(invented.body.result?.["content"][0].text));
      const { body } = await call(near.url, "sandbox_destroy", { session_id: sessionId }, mallory);
      expect(JSON.stringify(body.result)).toContain(NOT_FOUND);
      expect(await run("x")).toContain('"value":"0"');
    });

    test.each<[string, Readonly<Record<string, unknown>>]>([
      ["claims the scopes of an operator", { scopes: ["owlclaw:admin"] }],
      ["brings a principal with scopes", { principal: { id: "ada", scopes: ["owlclaw:admin"], claims: {} } }],
      ["brings a token", { authorization: "Bearer x" }],
    ])("even with the key, one that %s is not understood", async (_name, change) => {
      expect(await forward(message(change))).toMatchObject({ error: { kind: "invalid_request" } });
      expect(await run("x", ada, home)).toContain('"value":"0"');
    });

    test("even with the key, they reach sandboxes of the server that they are sent to, and nothing else", async () => {
      expect(await forward(message({ principal: "operator" }))).toMatchObject({ error: { kind: "session_not_found" } });
      expect(await forward(message({ name: "echo", input: { text: "x" } }))).toMatchObject({
        error: { kind: "tool_not_found" },
      });
      for (const input of [
        { code: "1" },
        { code: "1", session_id: "plain" },
        { code: "1", session_id: `AAAAAAAAAAAA.${"A".repeat(32)}` },
      ])
        expect(await forward(message({ input }))).toMatchObject({ error: { kind: "session_not_found" } });
      expect(await forward(message({ input: { code: 5, session_id: sessionId } }))).toMatchObject({
        error: { kind: "invalid_arguments" },
      });
      expect(await forward(message({ kind: "file", uri: "file:///etc/passwd" }))).toMatchObject({
        error: { kind: "invalid_request" },
      });
      const { body } = await call(home.url, "sandbox_list", {}, ada);
      expect(body.result?.["structuredContent"].sandboxes).toHaveLength(1);
    });

    test("are no way around a token, and no door of a server that stands alone", async () => {
      const envelope = seal.newEnvelope(homeId);
      const headers = { [FORWARD_HEADER]: seal.write(envelope), "content-type": "application/json" };
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
      expect((await fetch(home.url, { method: "POST", body, headers })).status).toBe(401);
      const alone = await startHttp();
      expect((await send(alone.origin, seal.write(envelope), Buffer.alloc(40))).status).toBe(404);
      await alone.stop();
    });
  },
);
