import { request as httpRequest } from "node:http";
import type { Client } from "@modelcontextprotocol/client";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mintToken } from "../../src/auth/mint-token.ts";
import { call, connectHttp, makePlace, type Place, Server } from "../e2e/sandbox-client.ts";
import { runCli } from "./cli-process.ts";

const SECRET = "a secret that is long enough for tests";
const ADMIN = "owlclaw:admin";
const LIST = "/api/sandboxes";

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

let place: Place;
let server: Server;
let origin: string;
let ada: Owner;
let eve: Owner;
let admin: Record<string, string>;

interface Owner {
  readonly client: Client;
  readonly headers: Record<string, string>;
  readonly sessionId: string;
}

beforeAll(async () => {
  place = makePlace();
  server = new Server(place, { auth: { enabled: true, jwt: { secret: SECRET } } });
  origin = new URL(await server.url()).origin;
  [ada, eve, admin] = [await owner("ada"), await owner("eve"), await bearer("root", [ADMIN])];
});

afterAll(() => server.stop());

async function bearer(subject: string, scopes: readonly string[] = []): Promise<Record<string, string>> {
  const token = await mintToken({ secret: SECRET, subject, scopes, expiresInSeconds: 600 });
  return { authorization: `Bearer ${token}` };
}

async function owner(subject: string): Promise<Owner> {
  const headers = await bearer(subject);
  const client = await connectHttp(`${origin}/mcp`, headers);
  const { structuredContent } = await call(client, "sandbox_create", { labels: { of: subject } });
  return { client, headers, sessionId: String(structuredContent?.["session_id"]) };
}

/** A request as written: `fetch` would tidy its path. */
function send(target: string, { method = "GET", headers = {} }: Sent = {}): Promise<Answer> {
  return sendTo(origin, target, { method, headers });
}

function sendTo(where: string, target: string, { method = "GET", headers = {} }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(where, { path: target, method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    asked.on("error", reject).end();
  });
}

function errorOf({ text }: Answer): { message: string; data: Record<string, unknown> } {
  return JSON.parse(text).error;
}

interface Listed {
  readonly name: string;
  readonly owner: string;
}

async function listed(): Promise<Listed[]> {
  const answer = await send(LIST, { headers: admin });
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text).sandboxes;
}

async function nameOf(subject: string): Promise<string> {
  const found = (await listed()).find(({ owner }) => owner === subject);
  if (found === undefined) throw new Error(`nobody called ${subject} has a sandbox`);
  return found.name;
}

async function expectAllAlive(): Promise<void> {
  for (const { client, sessionId } of [ada, eve]) {
    const result = await call(client, "shell_exec", { command: "echo here", session_id: sessionId });
    expect(result.structuredContent).toMatchObject({ stdout: "here\n" });
    expect(result.structuredContent).not.toHaveProperty("session_created", true);
  }
}

describe("an operator", () => {
  test("sees everybody's sandboxes, by name and never by the id that opens them", async () => {
    const answer = await send(LIST, { headers: admin });
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const entry = (subject: string) => ({
      name: expect.stringMatching(/^owl-[0-9a-f]{20}$/),
      owner: subject,
      state: "ready",
      template: "python",
      flavor: "small",
      runtime: "bubblewrap",
      labels: { of: subject },
      created_at: time,
      last_used_at: time,
      ends_at: time,
    });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { sandboxes: [entry("ada"), entry("eve")] }]);
    expect(answer.headers["cache-control"]).toBe("private, no-store");
    for (const { sessionId } of [ada, eve]) expect(answer.text).not.toContain(sessionId);
  });

  test("sees what the command on the server's machine shows", async () => {
    const args = ["mcp-server", "sandboxes", "list", "--json"];
    const { out } = await runCli(args, { env: { SANDBOX_ROOT: place.dataFolder } });
    expect(JSON.parse(out).sandboxes).toEqual(await listed());
  });

  test("destroys one by its name: it is gone for its owner, and the others live", async () => {
    const bob = await owner("bob");
    const target = `${LIST}/${await nameOf("bob")}`;
    expect(await send(target, { method: "DELETE", headers: admin })).toMatchObject({ status: 204, text: "" });
    const result = await call(bob.client, "shell_exec", { command: "true", session_id: bob.sessionId });
    expect([result.isError, result.content[0]?.text]).toEqual([true, expect.stringContaining("there is no sandbox")]);
    expect((await listed()).map(({ owner }) => owner)).toEqual(["ada", "eve"]);
    const again = await send(target, { method: "DELETE", headers: admin });
    expect([again.status, errorOf(again).data["kind"]]).toEqual([404, "session_not_found"]);
    expect(server.log).toContainEqual(
      expect.objectContaining({ message: "an operator destroyed a sandbox", principal: "root" }),
    );
    await expectAllAlive();
  });

  test("can neither destroy by a session_id nor open another's files with one", async () => {
    for (const id of [ada.sessionId, "x", "*", "%2a", "owl-", `owl-${"0".repeat(20)}`, "x".repeat(5000)]) {
      const answer = await send(`${LIST}/${id}`, { method: "DELETE", headers: admin });
      expect([answer.status, errorOf(answer).data]).toMatchObject([404, { kind: "session_not_found" }]);
    }
    for (const id of [ada.sessionId, await nameOf("ada")])
      expect((await send(`${LIST}/${id}/files/x`, { headers: admin })).status).toBe(404);
    await expectAllAlive();
  });
});

/** Each of them wants both routes, with a real name and a real id. */
async function targets(): Promise<[method: string, target: string][]> {
  return [
    ["GET", LIST],
    ["DELETE", `${LIST}/${await nameOf("ada")}`],
    ["DELETE", `${LIST}/${ada.sessionId}`],
    ["DELETE", `${LIST}/${eve.sessionId}`],
  ];
}

describe("who is no operator", () => {
  test("gets 401 without a token", async () => {
    for (const [method, target] of await targets()) {
      const answer = await send(target, { method });
      expect([answer.status, errorOf(answer).data]).toMatchObject([401, { kind: "unauthorized" }]);
      expect(answer.headers["www-authenticate"]).toMatch(/^Bearer resource_metadata="[^"]+"$/);
    }
    await expectAllAlive();
  });

  test("gets 403 with a valid token: the challenge names the scope, the answer says what to do, and nothing is told", async () => {
    for (const [method, target] of await targets()) {
      const answer = await send(target, { method, headers: ada.headers });
      expect(answer.status).toBe(403);
      expect(answer.headers["www-authenticate"]).toMatch(
        /^Bearer error="insufficient_scope", error_description="[^"]+", scope="owlclaw:admin", resource_metadata="[^"]+"$/,
      );
      expect(errorOf(answer)).toMatchObject({
        message: "This needs the scope owlclaw:admin.",
        data: {
          kind: "forbidden",
          reason: "insufficient_scope",
          scope: ADMIN,
          retryable: false,
          trace_id: answer.headers["x-trace-id"],
          hint: expect.stringContaining("token"),
        },
      });
      expect(answer.text).not.toContain("owl-");
    }
    await expectAllAlive();
  });

  test.each([
    ["the scope in capitals", ["OWLCLAW:ADMIN"]],
    ["a longer scope", ["owlclaw:administrator"]],
    ["a shorter scope", ["owlclaw", "admin"]],
    ["wildcards", ["*", "owlclaw:*"]],
    ["the scope in a list of another make", ["owlclaw:admin,x"]],
  ])("gets 403 with %s", async (_name, scopes) => {
    const headers = await bearer("mallory", scopes);
    for (const [method, target] of await targets()) expect((await send(target, { method, headers })).status).toBe(403);
    await expectAllAlive();
  });

  test("gets 401 with an operator's token that has expired, or that somebody else signed", async () => {
    const nowSeconds = Math.floor(Date.now() / 1000);
    const sign = (secret: string, exp: number): Promise<string> =>
      new SignJWT({ scope: ADMIN })
        .setProtectedHeader({ alg: "HS256", typ: "JWT" })
        .setSubject("root")
        .setExpirationTime(exp)
        .sign(Buffer.from(secret));
    const tokens = [await sign(SECRET, nowSeconds - 60), await sign(`${SECRET}!`, nowSeconds + 600)];
    for (const token of tokens)
      for (const [method, target] of await targets())
        expect((await send(target, { method, headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
    await expectAllAlive();
  });

  test("gets 401 with an operator's token in any other place, or beside another token", async () => {
    const token = String(admin["authorization"]).slice("Bearer ".length);
    const elsewhere: Sent["headers"][] = [
      { cookie: `access_token=${token}` },
      { "x-authorization": `Bearer ${token}` },
      { "proxy-authorization": `Bearer ${token}` },
      { authorization: [String(ada.headers["authorization"]), `Bearer ${token}`] },
      { authorization: `Bearer ${token}, Bearer ${token}` },
      { authorization: `Basic ${token}` },
    ];
    for (const headers of elsewhere) expect((await send(LIST, { headers: headers ?? {} })).status).toBe(401);
    expect((await send(`${LIST}?access_token=${token}`)).status).toBe(401);
  });
});

describe("no trick with the method", () => {
  const OVERRIDES = ["x-http-method-override", "x-method-override", "x-http-method"];

  test("makes a harmless request destroy", async () => {
    const target = `${LIST}/${await nameOf("ada")}`;
    for (const method of ["GET", "POST", "PUT", "PATCH", "HEAD"]) {
      for (const name of OVERRIDES) {
        const answer = await send(`${target}?_method=DELETE`, { method, headers: { ...admin, [name]: "DELETE" } });
        expect([answer.status, answer.headers["allow"]]).toEqual([405, "DELETE, OPTIONS"]);
      }
    }
    await expectAllAlive();
  });

  test("shows the list: other methods are 405 or name the methods, with no word of a sandbox", async () => {
    for (const method of ["HEAD", "OPTIONS", "POST", "PUT", "DELETE", "TRACE"]) {
      const override = { "x-http-method-override": "GET" };
      for (const headers of [override, { ...ada.headers, ...override }, { ...admin, ...override }]) {
        const answer = await send(LIST, { method, headers });
        expect(answer.status).toBe(method === "OPTIONS" ? 204 : 405);
        expect(answer.headers["allow"]).toBe("GET, OPTIONS");
        expect(answer.text).not.toContain("owl-");
      }
    }
  });
});

describe("no trick with the path", () => {
  const PATHS = [
    "/api/../api/sandboxes",
    "/api/%2e%2e/api/sandboxes",
    "/api/%2E%2E/api/sandboxes",
    "/api/./sandboxes",
    "/api/%2e/sandboxes",
    "/mcp/../api/sandboxes",
    "/health/../api/sandboxes",
    "//api/sandboxes",
    "/api//sandboxes",
    "/api/sandboxes/",
    "/api/sandboxes/.",
    "/api/sandboxes/x/..",
    "/api/sandboxes%2f",
    "/api%2fsandboxes",
    "/api\\sandboxes",
    "/API/sandboxes",
    "/api/Sandboxes",
    "/api/%73andboxes",
    "/api/sandboxes;x",
    "/api/sandboxes%00",
    "/api/sandboxes%20",
  ];

  test.each(PATHS)("%s shows nothing, to nobody", async (path) => {
    for (const headers of [{}, ada.headers, admin]) {
      const answer = await send(path, { headers });
      expect([401, 403, 404, 405]).toContain(answer.status);
      expect(answer.text).not.toContain("owl-");
    }
  });

  test("destroys: only the name itself is a name", async () => {
    const name = await nameOf("ada");
    const bent = [
      name.toUpperCase(),
      `${name}/`,
      `${name}/.`,
      `./${name}`,
      `x/../${name}`,
      `%2e/${name}`,
      `/${name}`,
      `${name}%00`,
      `${name};x`,
      `%6f${name.slice(1)}`,
      `${name}/files/..`,
    ];
    for (const part of bent) {
      const answer = await send(`${LIST}/${part}`, { method: "DELETE", headers: admin });
      expect([404, 405]).toContain(answer.status);
    }
    await expectAllAlive();
  });

  test("a whole address and a query change nothing about who may", async () => {
    for (const target of [`${origin}${LIST}`, `${LIST}?x=/health`, `${LIST}?scope=${ADMIN}`]) {
      expect((await send(target)).status).toBe(401);
      expect((await send(target, { headers: ada.headers })).status).toBe(403);
      expect((await send(target, { headers: admin })).status).toBe(200);
    }
  });
});

describe("with auth off", () => {
  test("nobody is an operator: 403 says what to do, whatever is sent, and asks for no token", async () => {
    const open = new Server(makePlace(), {});
    const url = await open.url();
    const client = await connectHttp(url);
    const { structuredContent } = await call(client, "sandbox_create");
    const sessionId = String(structuredContent?.["session_id"]);
    const { sandbox } = await open.logged("sandbox created");
    const there = new URL(url).origin;
    const asked: [string, string][] = [
      ["GET", LIST],
      ["DELETE", `${LIST}/${String(sandbox)}`],
      ["DELETE", `${LIST}/${sessionId}`],
    ];
    for (const [method, target] of asked) {
      for (const headers of [{}, admin]) {
        const answer = await sendTo(there, target, { method, headers });
        expect([answer.status, errorOf(answer).data]).toMatchObject([
          403,
          { kind: "forbidden", reason: "auth_disabled", hint: expect.stringMatching(/auth\.enabled.*sandboxes list/) },
        ]);
        expect(answer.headers["www-authenticate"]).toBeUndefined();
      }
    }
    const alive = await call(client, "shell_exec", { command: "echo here", session_id: sessionId });
    expect(alive.structuredContent).toMatchObject({ stdout: "here\n" });
    await open.stop();
  });

  test("where sandboxes are switched off there is no such place", async () => {
    const bare = new Server(makePlace(), { sandbox: { enabled: false } });
    const there = new URL(await bare.url()).origin;
    expect((await sendTo(there, LIST, {})).status).toBe(404);
    expect((await sendTo(there, `${LIST}/x`, { method: "DELETE" })).status).toBe(404);
    await bare.stop();
  });
});
