import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTokenKeys, goodClaims } from "./forge-token.ts";
import {
  bearer,
  callTool,
  EventReader,
  modern,
  openResponse,
  openSession,
  RawConnection,
  rpc,
  send,
  statuses,
  type Answer,
} from "./http-client.ts";
import { type HttpServerProcess, startHttp } from "./server.ts";
import { attackedServerAuth, type AttackedServer, goodToken, type TokenAttack, tokenAttacks } from "./token-attacks.ts";

const keys = createTokenKeys();
const KINDS = ["rsa", "ec", "secret"] as const;
const servers = new Map<AttackedServer, HttpServerProcess>();

const CALL = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "whoami" } });
const EVENTS = { accept: "text/event-stream" };

/** Every door that asks for a token. */
const DOORS: Readonly<Record<string, (origin: string, authorization: Record<string, string>) => Promise<Answer>>> = {
  "POST /mcp": (origin, authorization) =>
    send(`${origin}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", ...authorization },
      body: CALL,
    }),
  "GET /mcp": (origin, authorization) => send(`${origin}/mcp`, { headers: { ...EVENTS, ...authorization } }),
  "DELETE /mcp": (origin, authorization) => send(`${origin}/mcp`, { method: "DELETE", headers: authorization }),
  "GET /mcp/sse": (origin, authorization) => send(`${origin}/mcp/sse`, { headers: { ...EVENTS, ...authorization } }),
  "POST /mcp/messages": (origin, authorization) =>
    send(`${origin}/mcp/messages?sessionId=x`, {
      method: "POST",
      headers: { "content-type": "application/json", ...authorization },
      body: CALL,
    }),
};

beforeAll(async () => {
  await Promise.all(
    KINDS.map(async (kind) => servers.set(kind, await startHttp({ config: { auth: attackedServerAuth(kind, keys) } }))),
  );
});

afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.stop()));
});

function serverOf(kind: AttackedServer): HttpServerProcess {
  const server = servers.get(kind);
  if (server === undefined) throw new Error(`no server for ${kind}`);
  return server;
}

const [FIRST_DOOR] = Object.keys(DOORS);
/** All doors ask one guard: each attack goes to the first, and each of the others gets every eighth, beginning elsewhere. */
const SHARE = process.env["OWLCLAW_TEST_LONG"] === "1" ? 1 : 8;

describe.each(Object.entries(DOORS))("token attacks on %s", (door, knock) => {
  const at = Object.keys(DOORS).indexOf(door);
  const attacks = tokenAttacks.filter((_, index) => door === FIRST_DOOR || index % SHARE === at % SHARE);
  test.each(attacks)("refuses $name ($server)", async (attack) => {
    const { origin } = serverOf(attack.server);
    const token = await attack.token(keys);
    const answer = await knock(origin, { authorization: `Bearer ${headerSafe(token)}` });
    expectRefusal(answer, attack, origin);
    expect(leaksOf(token, answer.text + JSON.stringify(answer.headers))).toEqual([]);
  });
});

test("nothing of any attacking or good token is in the servers' logs", async () => {
  for (const attack of tokenAttacks)
    expect(leaksOf(await attack.token(keys), serverOf(attack.server).log())).toEqual([]);
  for (const kind of KINDS) {
    const token = goodToken(kind, keys);
    expect((await callTool(serverOf(kind).origin, "whoami", {}, { token })).status).toBe(200);
    expect(leaksOf(token, serverOf(kind).log())).toEqual([]);
    expect(serverOf(kind).log()).not.toContain(keys.secret);
  }
});

test("the address in the challenge holds the metadata of this very server", async () => {
  const { origin } = serverOf("rsa");
  const { headers } = await rpc(origin, "ping");
  const url = /resource_metadata="([^"]+)"/.exec(headers["www-authenticate"] ?? "")?.[1] ?? "";
  expect(new URL(url).origin).toBe(origin);
  expect(new URL(url).pathname).toMatch(/^\/\.well-known\/oauth-protected-resource/);
  const metadata = await send(url);
  expect(metadata.status).toBe(200);
  expect(metadata.json).toMatchObject({ resource: `${origin}/mcp`, authorization_servers: [keys.issuer] });
  expect((await send(`${origin}/.well-known/oauth-protected-resource`)).json).toEqual(metadata.json);
});

test("a request without a token is challenged without an error", async () => {
  const { origin } = serverOf("secret");
  const answer = await rpc(origin, "ping");
  expect(answer.status).toBe(401);
  expect(answer.headers["www-authenticate"]).toMatch(/^Bearer resource_metadata="[^"]+"$/);
  expect(answer.json.error.data).toMatchObject({ kind: "unauthorized", reason: "token_missing" });
});

describe.each(KINDS)("[003-FR-009] a good token (%s)", (kind) => {
  test("is honoured on POST /mcp, plain, in a session and without handshake", async () => {
    const { origin } = serverOf(kind);
    const token = goodToken(kind, keys);
    const headers = await openSession(origin, { token });
    const answers = [
      await callTool(origin, "whoami", {}, { token }),
      await callTool(origin, "whoami", {}, { token, headers }),
      await modern(origin, "tools/call", { name: "whoami" }, { token }),
    ];
    expect(answers.map(({ json }) => json.result.content[0].text)).toEqual(["alice", "alice", "alice"]);
  });

  test("is honoured on GET /mcp/sse and POST /mcp/messages", async () => {
    const { origin } = serverOf(kind);
    const headers = { ...EVENTS, ...bearer(goodToken(kind, keys)) };
    const stream = await openResponse(`${origin}/mcp/sse`, { headers });
    const events = new EventReader(stream);
    const endpoint = await events.find(({ event }) => event === "endpoint");
    const url = new URL(endpoint.data, origin);
    expect((await send(url.href, { method: "POST", headers, body: CALL })).status).toBe(202);
    const { data } = await events.find(({ event }) => event === "message");
    expect(JSON.parse(data)).toMatchObject({ id: 7, result: { content: [{ text: "alice" }] } });
    stream.destroy();
  });
});

describe("a client that hangs up while its token is looked at", () => {
  const TIMES = 100;

  /** Asks with tokens that the server has not seen, and is gone before they are verified. */
  async function knockAndRun(port: number, head: string): Promise<void> {
    for (let time = 0; time < TIMES; time += 1) {
      const connection = await RawConnection.open(port);
      const fresh = goodToken("secret", keys, { ...goodClaims(keys), jti: `${head} ${time}` });
      connection.write(`${head}Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${fresh}\r\n`);
      await new Promise((resolve) => connection.socket.write("Accept: text/event-stream\r\n\r\n", resolve));
      connection.socket.resetAndDestroy();
    }
  }

  test("leaves no stream of GET /mcp/sse behind", async () => {
    const { origin, port } = serverOf("secret");
    const token = goodToken("secret", keys);
    const sessions = async (): Promise<number> =>
      (await send(`${origin}/mcp`, { headers: bearer(token) })).json.sessions;
    const before = await sessions();
    await knockAndRun(port, "GET /mcp/sse HTTP/1.1\r\n");
    await expect.poll(sessions).toBe(before);
  });

  test("leaves the stream of its session free", async () => {
    const { origin, port } = serverOf("secret");
    const token = goodToken("secret", keys);
    const session = await openSession(origin, { token });
    const lines = Object.entries(session).map(([name, value]) => `${name}: ${value}\r\n`);
    await knockAndRun(port, `GET /mcp HTTP/1.1\r\n${lines.join("")}`);
    const again = async (): Promise<number | undefined> => {
      const stream = await openResponse(`${origin}/mcp`, { headers: { ...EVENTS, ...session, ...bearer(token) } });
      stream.destroy();
      return stream.statusCode;
    };
    await expect.poll(again).toBe(200);
  });
});

describe("the Authorization header", () => {
  const good = `Bearer ${goodToken("secret", keys)}`;
  const bad = "Bearer a.b.c";

  test.each([
    ["the good one first", [good, bad]],
    ["the good one last", [bad, good]],
    ["the same one twice", [good, good]],
  ])("is refused when it is there twice: %s", async (_name, values) => {
    const { port } = serverOf("secret");
    const connection = await RawConnection.open(port);
    const lines = values.map((value) => `Authorization: ${value}\r\n`).join("");
    connection.write(
      `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${lines}Connection: close\r\nContent-Length: ${CALL.length}\r\n\r\n${CALL}`,
    );
    expect(statuses(await connection.closed)).toEqual([401]);
  });

  test.each([
    ["a query parameter", (token: string) => ({ path: `/mcp?access_token=${token}`, headers: {} })],
    ["a cookie", (token: string) => ({ path: "/mcp", headers: { cookie: `token=${token}` } })],
    [
      "basic credentials",
      (token: string) => ({ path: "/mcp", headers: { authorization: `Basic ${btoa(`a:${token}`)}` } }),
    ],
    ["the word alone", () => ({ path: "/mcp", headers: { authorization: "Bearer" } })],
    ["the label header", (token: string) => ({ path: "/mcp", headers: { "x-mcp-client-id": token } })],
  ])("cannot be replaced by %s", async (_name, make) => {
    const { origin } = serverOf("secret");
    const { path, headers } = make(goodToken("secret", keys));
    const answer = await send(`${origin}${path}`, { method: "POST", headers: { ...headers }, body: CALL });
    expect(answer.status).toBe(401);
  });

  test("is read in any letter case of its scheme", async () => {
    const { origin } = serverOf("secret");
    const headers = { authorization: `bEARER ${goodToken("secret", keys)}` };
    expect((await send(`${origin}/mcp`, { method: "POST", headers, body: CALL })).status).toBe(200);
  });
});

describe("[003-FR-009] with auth off", () => {
  test("any token is ignored", async () => {
    const server = await startHttp();
    try {
      for (const { token } of tokenAttacks.slice(0, 10)) {
        const answer = await callTool(server.origin, "whoami", {}, { token: await token(keys) });
        expect(answer.json.result.content[0].text).toBe("anonymous");
      }
      expect((await send(`${server.origin}/.well-known/oauth-protected-resource`)).status).toBe(404);
    } finally {
      await server.stop();
    }
  });
});

describe("[003-FR-012] MCP_AUTH_* variables", () => {
  const { issuer, audience } = keys;
  const common = { MCP_AUTH_ENABLED: "true", MCP_AUTH_AUDIENCE: audience, MCP_AUTH_ISSUER: issuer };

  test.each([
    ["MCP_AUTH_JWT_SECRET", "secret", { MCP_AUTH_JWT_SECRET: keys.secret }],
    ["MCP_AUTH_JWT_PUBLIC_KEY", "rsa", { MCP_AUTH_JWT_PUBLIC_KEY: keys.rsaPublicPem }],
    [
      "MCP_AUTH_JWT_PUBLIC_KEY on one line",
      "ec",
      { MCP_AUTH_JWT_PUBLIC_KEY: keys.ecPublicPem.replaceAll("\n", "\\n") },
    ],
  ] as const)("%s turns tokens into principals, and issuer and audience are checked", async (_name, kind, env) => {
    const server = await startHttp({ env: { ...common, ...env } });
    try {
      const statusOf = async (claims: object): Promise<number> => {
        const token = goodToken(kind, keys, { ...goodClaims(keys), ...claims });
        return (await callTool(server.origin, "whoami", {}, { token })).status;
      };
      expect(await statusOf({})).toBe(200);
      expect(await statusOf({ aud: "other" })).toBe(401);
      expect(await statusOf({ iss: "https://other.test" })).toBe(401);
      expect((await callTool(server.origin, "whoami")).status).toBe(401);
      expect(server.log()).not.toContain(keys.secret);
    } finally {
      await server.stop();
    }
  });

  test.each([
    ["no key", {}],
    ["a secret and a public key", { MCP_AUTH_JWT_SECRET: keys.secret, MCP_AUTH_JWT_PUBLIC_KEY: keys.rsaPublicPem }],
  ])("MCP_AUTH_ENABLED with %s stops the start", async (_name, env) => {
    const failure = await startHttp({ env: { ...common, ...env } }).catch((error: unknown) => String(error));
    expect(failure).toContain("auth.enabled = true");
    expect(failure).not.toContain(keys.secret);
  });
});

describe("an open stream", () => {
  test.each([
    "GET /mcp",
    "GET /mcp/sse",
    "POST /mcp subscriptions/listen",
    "POST /mcp of a session",
    "POST /mcp without a session",
  ])("ends when its token expires: %s", async (door) => {
    const { origin } = serverOf("rsa");
    const nowSeconds = Math.floor(Date.now() / 1000);
    const token = goodToken("rsa", keys, { ...goodClaims(keys), exp: nowSeconds + 2 });
    const stream = await openStream(door, origin, token);
    expect(stream.statusCode).toBe(200);
    expect(stream.headers["content-type"]).toBe("text/event-stream");
    for await (const _chunk of stream);
    expect(Date.now() / 1000).toBeGreaterThanOrEqual(nowSeconds + 2);
  });
});

async function openStream(door: string, origin: string, token: string) {
  if (door === "GET /mcp/sse") return openResponse(`${origin}/mcp/sse`, { headers: { ...EVENTS, ...bearer(token) } });
  if (door === "GET /mcp") {
    const headers = await openSession(origin, { token });
    return openResponse(`${origin}/mcp`, { headers: { ...headers, ...EVENTS, ...bearer(token) } });
  }
  if (door === "POST /mcp of a session") {
    const headers = await openSession(origin, { token, capabilities: { elicitation: {} } });
    return openCall(origin, { ...headers, ...bearer(token) }, { name: "ask", arguments: {} });
  }
  if (door === "POST /mcp without a session") {
    const talking = { name: "chatter", arguments: { messages: 1_000_000, chars: 10 }, _meta: { progressToken: 1 } };
    return openCall(origin, { ...EVENTS, ...bearer(token) }, talking);
  }
  return openListening(origin, token);
}

/** A call that says something before its answer, and then does not come to an end by itself. */
function openCall(origin: string, headers: Record<string, string>, params: object) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  return openResponse(`${origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
}

async function openListening(origin: string, token: string) {
  const { modernRequest } = await import("./http-client.ts");
  const { params, headers } = modernRequest("subscriptions/listen", { notifications: { toolsListChanged: true } });
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params });
  return openResponse(`${origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers, ...bearer(token) },
    body,
  });
}

function expectRefusal(answer: Answer, { reason }: TokenAttack, origin: string): void {
  expect(answer.status).toBe(401);
  const challenge = answer.headers["www-authenticate"] ?? "";
  expect(challenge).toMatch(/^Bearer error="invalid_token", error_description="[^"\\]+", resource_metadata="[^"\\]+"$/);
  expect(challenge).toContain(`resource_metadata="${origin}/.well-known/oauth-protected-resource`);
  expect(answer.json).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: expect.any(Number) } });
  expect(answer.json.error.data).toMatchObject({
    kind: "unauthorized",
    reason,
    retryable: false,
    trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
  });
}

/** The parts of a token that a text shows; short ones may be there by coincidence. */
function leaksOf(token: string, text: string): string[] {
  return token.split(/[.,\s"]+/).filter((part) => part.length >= 16 && text.includes(part));
}

/** Headers are bytes: what an attacker sends beyond ASCII goes out as it is. */
function headerSafe(token: string): string {
  return Buffer.from(token, "utf8").toString("latin1");
}
