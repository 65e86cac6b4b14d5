import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, bearer, EventReader, openResponse, openSession, send } from "../escape/http-client.ts";
import { type HttpServerProcess, type ServerOptions, startHttp } from "../escape/server.ts";

const PING = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
const APP = "https://app.example.com";
const CORS_HEADERS = [
  "access-control-allow-origin",
  "access-control-allow-credentials",
  "access-control-allow-methods",
  "access-control-allow-headers",
  "access-control-expose-headers",
];

function ping(origin: string, headers: Record<string, string>): Promise<Answer> {
  return send(`${origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: PING,
  });
}

function preflight(
  origin: string,
  page: string,
  { method = "POST", headers = "content-type", path = "/mcp" } = {},
): Promise<Answer> {
  return send(`${origin}${path}`, {
    method: "OPTIONS",
    headers: { origin: page, "access-control-request-method": method, "access-control-request-headers": headers },
  });
}

function corsHeadersOf({ headers }: Answer): string[] {
  return CORS_HEADERS.filter((name) => headers[name] !== undefined);
}

function serving(options: ServerOptions): { readonly origin: () => string; readonly port: () => number } {
  let server: HttpServerProcess;
  beforeAll(async () => {
    server = await startHttp(options);
  });
  afterAll(() => server.stop());
  return { origin: () => server.origin, port: () => server.port };
}

describe("[004-R3.6] CORS is off by default", () => {
  const { origin, port } = serving({});

  test.each([APP, "http://localhost:3000", "http://127.0.0.1:1", "null", "http://[::1]"])(
    "pages of %s are refused and get no CORS header",
    async (page) => {
      const answer = await ping(origin(), { origin: page });
      expect(answer.status).toBe(403);
      expect(answer.json.error.data.kind).toBe("forbidden");
      expect(corsHeadersOf(answer)).toEqual([]);
    },
  );

  test("a preflight is refused", async () => {
    const answer = await preflight(origin(), APP);
    expect(answer.status).toBe(403);
    expect(corsHeadersOf(answer)).toEqual([]);
  });

  test("clients that are no pages, and the server's own origin, are served", async () => {
    expect((await ping(origin(), {})).status).toBe(200);
    expect((await ping(origin(), { origin: `http://127.0.0.1:${port()}` })).status).toBe(200);
  });
});

describe("[000-R6.3] MCP_ENABLE_CORS=true alone", () => {
  const { origin } = serving({ env: { MCP_ENABLE_CORS: "true" } });

  test.each([
    "http://localhost:3000",
    "http://127.0.0.1:5173",
    "https://localhost",
    "http://[::1]:8000",
    "http://127.9.9.9",
  ])("[000-R5.5] lets pages of %s in", async (page) => {
    const answer = await ping(origin(), { origin: page });
    expect(answer.status).toBe(200);
    expect(answer.headers["access-control-allow-origin"]).toBe(page);
    expect(answer.headers["vary"]?.toLowerCase()).toContain("origin");
    expect(answer.headers["access-control-allow-credentials"]).toBeUndefined();
  });

  test.each([
    APP,
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://evil.example:80",
    "http://localhost@evil.example",
    "http://evil.example#localhost",
    "http://evil.example/localhost",
    "http://evil.example?localhost",
    "http://[::1].evil.example",
    "http://[::1",
    "http://0.0.0.0:3000",
    "http://2130706433",
    "http://127.0.0.1%00.evil.example",
    "ftp://localhost",
    "file://localhost",
    "chrome-extension://localhost",
    "javascript:localhost",
    "localhost",
    "null",
    "*",
    "http://localhost:3000 http://evil.example",
    "http://localhost:3000, http://evil.example",
  ])("refuses pages of %s", async (page) => {
    const answer = await ping(origin(), { origin: page });
    expect(answer.status).toBe(403);
    expect(corsHeadersOf(answer)).toEqual([]);
  });
});

describe("[004-R3.6] http.cors.origins", () => {
  const { origin } = serving({ config: { http: { cors: { enabled: true, origins: [APP] } } } });

  test("[001-cors] answers the preflight of a listed origin for GET, POST and Content-Type", async () => {
    const answer = await preflight(origin(), APP, { headers: "content-type,authorization,mcp-session-id" });
    expect(answer.status).toBe(204);
    expect(answer.headers["access-control-allow-origin"]).toBe(APP);
    expect(list(answer, "access-control-allow-methods")).toEqual(expect.arrayContaining(["get", "post", "options"]));
    expect(list(answer, "access-control-allow-headers")).toEqual(
      expect.arrayContaining([
        "content-type",
        "authorization",
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "last-event-id",
      ]),
    );
    expect(answer.headers["access-control-allow-credentials"]).toBeUndefined();
    expect(answer.headers["vary"]?.toLowerCase()).toContain("origin");
  });

  test.each(["/mcp/sse", "/mcp/messages", "/health"])("answers preflights at %s", async (path) => {
    expect((await preflight(origin(), APP, { path })).status).toBe(204);
  });

  test("grants only known names among the headers that are asked for", async () => {
    const answer = await preflight(origin(), APP, { headers: "mcp-param-region, cookie, x-evil, mcp-param-a b, *" });
    const granted = list(answer, "access-control-allow-headers");
    expect(granted).toContain("mcp-param-region");
    for (const name of ["cookie", "x-evil", "mcp-param-a b", "*"]) expect(granted).not.toContain(name);
  });

  test("exposes the session id and the challenge to a listed page", async () => {
    const answer = await ping(origin(), { origin: APP });
    expect(list(answer, "access-control-expose-headers")).toEqual(
      expect.arrayContaining(["mcp-session-id", "www-authenticate"]),
    );
  });

  test("puts the headers on errors and on streams too, so that the page can read them", async () => {
    const missing = await send(`${origin()}/nothing`, { headers: { origin: APP } });
    expect([missing.status, missing.headers["access-control-allow-origin"]]).toEqual([404, APP]);
    const stream = await openResponse(`${origin()}/mcp/sse`, { headers: { origin: APP } });
    expect(stream.headers["access-control-allow-origin"]).toBe(APP);
    expect((await new EventReader(stream).next())?.event).toBe("endpoint");
    stream.destroy();
  });

  test.each([
    "https://app.example.com.evil.example",
    "https://evil-app.example.com",
    "https://sub.app.example.com",
    "http://app.example.com",
    "https://app.example.com:8443",
    "https://app.example.com/",
    "http://localhost:3000",
    "null",
  ])("refuses %s, which is not listed letter by letter", async (page) => {
    for (const answer of [await ping(origin(), { origin: page }), await preflight(origin(), page)]) {
      expect(answer.status).toBe(403);
      expect(corsHeadersOf(answer)).toEqual([]);
    }
  });
});

describe("[004-R3.6] the origin *", () => {
  const secret = "0123456789abcdef0123456789abcdef0123456789";
  const { origin } = serving({
    config: {
      http: { cors: { enabled: true, origins: ["*"] } },
      auth: { enabled: true, jwt: { secret } },
    },
  });

  test("lets every page in by name, never with credentials", async () => {
    for (const page of [APP, "https://evil.example", "null"]) {
      const answers = [
        await preflight(origin(), page),
        await ping(origin(), { origin: page, cookie: "a=b" }),
        await ping(origin(), { origin: page, ...bearer("a.b.c") }),
      ];
      expect(answers.map(({ status }) => status)).toEqual([204, 401, 401]);
      for (const answer of answers) {
        expect(["*", page]).toContain(answer.headers["access-control-allow-origin"]);
        expect(answer.headers["access-control-allow-credentials"]).toBeUndefined();
      }
    }
  });
});

test.each(["https://*.example.com", "example.com", "https://app.example.com/path", "https://user@app.example.com"])(
  "[004-R3.6] the start refuses %s as an origin and says what one looks like",
  async (bad) => {
    const failure = await startHttp({ config: { http: { cors: { enabled: true, origins: [bad] } } } }).catch(String);
    expect(failure).toContain("http.cors.origins");
    expect(failure).toContain("must be an origin");
  },
);

test("a session works from an allowed page from the handshake to its end", async () => {
  const server = await startHttp({ env: { MCP_ENABLE_CORS: "true" } });
  try {
    const headers = await openSession(server.origin, { headers: { origin: "http://localhost:3000" } });
    const page = { ...headers, origin: "http://localhost:3000" };
    expect((await ping(server.origin, page)).json.result).toEqual({});
    expect((await preflight(server.origin, "http://localhost:3000", { method: "DELETE" })).status).toBe(204);
    expect((await send(`${server.origin}/mcp`, { method: "DELETE", headers: page })).status).toBe(204);
  } finally {
    await server.stop();
  }
});

function list({ headers }: Answer, name: string): string[] {
  return String(headers[name] ?? "")
    .toLowerCase()
    .split(",")
    .map((item) => item.trim());
}
