import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ADMIN, AUTH, cookieOf, fromPage, login, newLink, PageOperator, token } from "./dashboard-lab.ts";
import { rpc, send } from "./http-client.ts";
import { type HttpServerProcess, startHttp } from "./server.ts";

let server: HttpServerProcess;
let origin: string;
let root: PageOperator;

beforeAll(async () => {
  server = await startHttp({ config: { ...AUTH, http: { cors: { enabled: true, origins: ["*"] } } } });
  ({ origin } = server);
  root = await PageOperator.byToken(origin);
});

afterAll(() => server.stop());

const api = (name: string): string => `${origin}/dashboard/api/${name}`;

describe("the login", () => {
  test("takes an operator's token and answers with a cookie that no script and no other site can use", async () => {
    const answer = await login(origin, await token("root", [ADMIN]));
    expect([answer.status, answer.json]).toEqual([
      200,
      { operator: "root", csrf: expect.stringMatching(/^[\w-]{43}$/), expiresAt: expect.stringMatching(/Z$/) },
    ]);
    expect(answer.headers["set-cookie"]).toEqual([
      expect.stringMatching(/^owlclaw_dashboard=[\w-]{43}; Path=\/dashboard; HttpOnly; SameSite=Strict$/),
    ]);
  });

  test("refuses a normal client's token, a forged one and none, and sets no cookie", async () => {
    // Three of them: a fourth would meet the brake.
    const bad = [await token("ada"), await token("ada", ["OWLCLAW:ADMIN", "owlclaw:*"]), "x.y.z"];
    const other = await startHttp({ config: AUTH });
    for (const text of bad) {
      const answer = await login(other.origin, text);
      expect([401, 403]).toContain(answer.status);
      expect(answer.headers["set-cookie"]).toBeUndefined();
    }
    await other.stop();
  });

  test("slows down whoever guesses: after the third failure there is a wait, and it is said how long", async () => {
    const other = await startHttp({ config: AUTH });
    const guess = (): ReturnType<typeof login> => login(other.origin, "a.b.c");
    expect([(await guess()).status, (await guess()).status, (await guess()).status]).toEqual([401, 401, 401]);
    // The first waits are short, and a slow machine may sit one of them out; they double.
    let braked = await guess();
    for (let attempt = 0; attempt < 10 && braked.status === 401; attempt += 1) braked = await guess();
    expect([braked.status, braked.json.error.kind]).toEqual([429, "too_many_attempts"]);
    expect(Number(braked.headers["retry-after"])).toBeGreaterThan(0);
    await other.stop();
  });

  test("never takes up a key that it did not make, and ends the one that was there", async () => {
    const fixed = `owlclaw_dashboard=${"A".repeat(43)}`;
    const first = await login(origin, await token("root", [ADMIN]), { cookie: fixed });
    expect(cookieOf(first)).not.toBe(fixed);
    expect((await send(api("session"), { headers: { cookie: fixed } })).status).toBe(401);
    const second = await login(origin, await token("root", [ADMIN]), { cookie: cookieOf(first) });
    expect(cookieOf(second)).not.toBe(cookieOf(first));
    expect((await send(api("session"), { headers: { cookie: cookieOf(first) } })).status).toBe(401);
    expect((await send(api("session"), { headers: { cookie: cookieOf(second) } })).status).toBe(200);
  });

  test("does not outlive its token, and ends with the logout", async () => {
    const own = await PageOperator.byToken(origin, "leaver");
    const { json } = await own.get("session");
    expect(Date.parse(json.expiresAt)).toBeLessThanOrEqual(Date.now() + 600_000);
    expect((await own.post("logout")).status).toBe(200);
    expect((await own.get("session")).status).toBe(401);
  });

  test("says nothing of the token to the log", async () => {
    const secret = await token("root", [ADMIN]);
    await login(origin, secret);
    expect(server.log()).not.toContain(secret);
    expect(server.log()).not.toContain(root.cookie.slice("owlclaw_dashboard=".length));
    expect(server.log()).not.toContain(root.csrf);
  });
});

describe("the session", () => {
  test("is the cookie alone: no bearer token opens the API", async () => {
    const authorization = `Bearer ${await token("root", [ADMIN])}`;
    for (const name of ["session", "now", "ledger"]) {
      expect((await send(api(name), { headers: { authorization } })).status).toBe(401);
    }
  });

  test("counts nowhere else: the cookie is nothing to /mcp and /api", async () => {
    const headers = { cookie: root.cookie, "x-owlclaw-csrf": root.csrf };
    expect((await rpc(origin, "tools/list", {}, { headers })).status).toBe(401);
    for (const path of ["/api/ledger", "/api/stats", "/api/approvals", "/metrics", "/mcp"]) {
      expect((await send(`${origin}${path}`, { headers })).status).toBe(401);
    }
  });

  test("is none when two cookies claim to be it", async () => {
    const headers = { cookie: `${root.cookie}; owlclaw_dashboard=${"B".repeat(43)}` };
    expect((await send(api("session"), { headers })).status).toBe(401);
    expect((await send(api("session"), { headers: { cookie: [root.cookie, root.cookie] } })).status).toBe(401);
  });

  test("changes nothing without its own header", async () => {
    const { "x-owlclaw-csrf": _, ...without } = root.headers;
    const other = await PageOperator.byToken(origin, "other");
    for (const csrf of [undefined, "", "x", other.csrf, `${root.csrf}x`, root.csrf.toLowerCase()]) {
      const headers = csrf === undefined ? without : { ...without, "x-owlclaw-csrf": csrf };
      const answer = await send(api("logout"), { method: "POST", body: "{}", headers });
      expect([answer.status, answer.json.error.kind]).toEqual([403, "forbidden"]);
    }
    expect((await root.get("session")).status).toBe(200);
  });
});

describe("a page of another site", () => {
  const FOREIGN = ["https://evil.example", "http://localhost:1", "null", "http://127.0.0.1", "file://"];

  test.each(FOREIGN)("%s gets nothing, whatever CORS allows elsewhere", async (foreign) => {
    for (const name of ["session", "now", "live", "login"]) {
      const answer = await send(api(name), { headers: { ...root.headers, origin: foreign } });
      expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([403, undefined]);
    }
    const answer = await login(origin, await token("root", [ADMIN]), { origin: foreign });
    expect([answer.status, answer.headers["set-cookie"]]).toEqual([403, undefined]);
  });

  test("gets nothing where the browser says so without an origin", async () => {
    for (const site of ["cross-site", "same-site"]) {
      const { origin: _, ...rest } = root.headers;
      const headers = { ...rest, "sec-fetch-site": site };
      expect((await send(api("now"), { headers })).status).toBe(403);
      expect((await send(api("live"), { headers })).status).toBe(403);
    }
  });

  test("is told by no preflight that it may", async () => {
    const headers = {
      origin: "https://evil.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "x-owlclaw-csrf",
    };
    const answer = await send(api("login"), { method: "OPTIONS", headers });
    expect(answer.status).toBe(403);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  test("cannot reach it by a name that was made to point here", async () => {
    for (const host of ["evil.example", "evil.example:80", "localhost.evil.example", "169.254.169.254"]) {
      for (const path of ["/dashboard", "/dashboard/api/session", "/dashboard/open?key=x"]) {
        const answer = await send(`${origin}${path}`, { headers: { ...root.headers, host, origin: `http://${host}` } });
        expect(answer.status).toBe(403);
      }
    }
  });
});

describe("what is served", () => {
  const NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox";
  const PAGE =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'";

  test.each([
    ["/dashboard", 200, PAGE],
    ["/dashboard/sandboxes/x", 200, PAGE],
    ["/dashboard/api/session", 401, NOTHING],
    ["/dashboard/api/login", 200, NOTHING],
    ["/dashboard/assets/x.js", 404, NOTHING],
    ["/dashboard/open?key=x", 403, NOTHING],
  ])(
    "can be neither framed nor taken for something else, and runs no script but its own: %s",
    async (path, status, policy) => {
      const answer = await send(`${origin}${path}`);
      expect({ path, status: answer.status, headers: answer.headers }).toMatchObject({
        status,
        headers: {
          "x-frame-options": "DENY",
          "x-content-type-options": "nosniff",
          "referrer-policy": "no-referrer",
          "cross-origin-opener-policy": "same-origin",
          "cross-origin-resource-policy": "same-origin",
          "content-security-policy": policy,
        },
      });
    },
  );

  test.each([
    "/dashboard/assets/../../main.js",
    "/dashboard/assets/..%2f..%2fmain.js",
    "/dashboard/assets/%2e%2e/%2e%2e/main.js",
    "/dashboard/assets/....//main.js",
    "/dashboard/assets//etc/passwd",
    "/dashboard/assets/..\\..\\main.js",
    "/dashboard/assets/",
    "/dashboard/assets",
    "/dashboard/assets/%00",
    "/dashboard/../mcp",
  ])("is only what lies in the page's own folder: %s", async (path) => {
    const answer = await rawGet(path);
    expect(answer.text).not.toMatch(/createRequire|root:/);
    const type = String(answer.headers["content-type"]);
    expect(answer.status === 200 ? type : "none").toMatch(/^(text\/html|none)/);
  });

  test("is JSON in every answer of the API, also in errors", async () => {
    for (const name of ["session", "nothing", "sandboxes/%3Cscript%3E", "ledger/x", "%zz"]) {
      const answer = await root.get(name);
      expect(answer.headers["content-type"]).toBe("application/json");
      expect(answer.text).not.toContain("<script>");
    }
  });
});

async function rawGet(path: string): ReturnType<typeof send> {
  const { request } = await import("node:http");
  return new Promise((resolve, reject) => {
    const asked = request(origin, { path, agent: false, headers: fromPage(origin) }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: undefined }),
      );
    });
    asked.on("error", reject).end();
  });
}

describe("with auth off", () => {
  let open: HttpServerProcess;

  beforeAll(async () => {
    open = await startHttp({});
  });

  afterAll(() => open.stop());

  test("nobody gets in without the link: no token, no guess, no bare request", async () => {
    expect((await login(open.origin, await token("root", [ADMIN]))).status).toBe(403);
    expect((await send(`${open.origin}/dashboard/api/session`)).status).toBe(401);
    const answer = await send(`${open.origin}/dashboard/open?key=${"x".repeat(43)}`);
    expect([answer.status, answer.headers["set-cookie"]]).toEqual([403, undefined]);
  });

  test("the link opens the page once, and never a second time", async () => {
    const link = await newLink(open);
    const first = await send(link);
    expect([first.status, first.headers["location"], cookieOf(first)]).toEqual([
      303,
      "/dashboard",
      expect.stringMatching(/^owlclaw_dashboard=/),
    ]);
    const second = await send(link);
    expect([second.status, second.headers["set-cookie"]]).toEqual([403, undefined]);
    const operator = await PageOperator.byLink(await newLink(open));
    expect((await operator.get("session")).json).toMatchObject({ operator: "dashboard" });
    expect(open.log()).not.toContain(new URL(link).searchParams.get("key"));
  });

  test("a browser that looks ahead does not use the link up, and one behind a proxy does not get in", async () => {
    const link = await newLink(open);
    expect((await send(link, { headers: { "sec-purpose": "prefetch;prerender" } })).status).toBe(403);
    expect((await send(link, { method: "HEAD" })).status).toBe(403);
    for (const name of ["x-forwarded-for", "forwarded", "via"]) {
      expect((await send(link, { headers: { [name]: "203.0.113.5" } })).status).toBe(403);
    }
    expect((await send(link)).status).toBe(303);
  });

  test("a page that makes a browser try links in vain keeps nobody out", async () => {
    for (let attempt = 0; attempt < 20; attempt += 1) {
      expect((await send(`${open.origin}/dashboard/open?key=${attempt}`)).status).toBe(403);
    }
    expect((await send(await newLink(open))).status).toBe(303);
  });

  test("a session of one server is nothing to another", async () => {
    const operator = await PageOperator.byLink(await newLink(open));
    expect((await send(api("session"), { headers: operator.headers })).status).toBe(403);
    expect((await send(api("session"), { headers: { cookie: operator.cookie } })).status).toBe(401);
  });
});
