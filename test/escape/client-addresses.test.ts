import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ADMIN, AUTH, login, token } from "./dashboard-lab.ts";
import { rpc, send } from "./http-client.ts";
import { type HttpServerProcess, startHttp } from "./server.ts";

/** An operator must see where refused logins come from, and no client can name another address in place of its own. */
async function started(http: Readonly<Record<string, unknown>>): Promise<HttpServerProcess> {
  const server = await startHttp({ config: { ...AUTH, http } });
  onTestFinished(() => server.stop());
  return server;
}

async function addressOf(
  server: HttpServerProcess,
  path: string,
  headers: Readonly<Record<string, string | string[]>>,
): Promise<unknown> {
  const traceId = (await send(`${server.origin}${path}`, { headers })).headers["x-trace-id"];
  const line = await server.logged(String(traceId));
  return JSON.parse(line).client_address;
}

const STATUS = "/api/stats";

let proxied: HttpServerProcess;

beforeAll(async () => {
  const http = { trustedProxies: ["127.0.0.1", "10.0.0.0/8"] };
  proxied = await startHttp({ config: { ...AUTH, http } });
});

afterAll(() => proxied.stop());

test("a request without a token is logged with the address of its client, whatever the client claims", async () => {
  const server = await started({});
  expect(await addressOf(server, STATUS, {})).toBe("127.0.0.1");
  expect(await addressOf(server, STATUS, { "x-forwarded-for": "203.0.113.9", forwarded: "for=203.0.113.9" })).toBe(
    "127.0.0.1",
  );
});

interface Sent {
  readonly "x-forwarded-for"?: string | string[];
  readonly forwarded?: string;
}

test.each<[Sent, string]>([
  [{}, "127.0.0.1"],
  [{ "x-forwarded-for": "203.0.113.9" }, "203.0.113.9"],
  [{ "x-forwarded-for": "198.51.100.1, 203.0.113.9" }, "203.0.113.9"],
  [{ "x-forwarded-for": ["198.51.100.1", "203.0.113.9"] }, "203.0.113.9"],
  [{ "x-forwarded-for": "198.51.100.1, 203.0.113.9, 10.1.2.3" }, "203.0.113.9"],
  [{ "x-forwarded-for": "203.0.113.9:4711" }, "203.0.113.9"],
  [{ "x-forwarded-for": "10.1.2.3" }, "10.1.2.3"],
  [{ "x-forwarded-for": "198.51.100.1, nonsense" }, "127.0.0.1"],
  [{ "x-forwarded-for": "198.51.100.1,".repeat(900) + "203.0.113.9" }, "203.0.113.9"],
  [{ "x-forwarded-for": "203.0.113.9", forwarded: "for=198.51.100.1" }, "203.0.113.9"],
  [{ forwarded: 'for="[2001:db8::7]:4711";proto=https' }, "2001:db8::7"],
  [{ forwarded: "for=198.51.100.1, for=203.0.113.9;by=10.0.0.1" }, "203.0.113.9"],
])("behind a trusted proxy, %j comes from %s", async (headers, expected) => {
  expect(await addressOf(proxied, STATUS, { ...headers })).toBe(expected);
});

test("a failed login of the dashboard is logged with the address, and the wait after failures is for that address", async () => {
  const server = await started({ trustedProxies: ["127.0.0.1"] });
  const from = (address: string): Record<string, string> => ({ "x-forwarded-for": address });
  for (let count = 0; count < 3; count += 1)
    expect((await login(server.origin, "a.b.c", from("203.0.113.9"))).status).toBe(401);
  expect(JSON.parse(await server.logged('"dashboard request refused"'))).toMatchObject({
    client_address: "203.0.113.9",
  });
  expect((await login(server.origin, "a.b.c", from("198.51.100.1"))).status).toBe(401);
});

test("refused logins are counted by their reason", async () => {
  const server = await started({});
  await rpc(server.origin, "tools/list");
  await rpc(server.origin, "tools/list", {}, { token: "x.y.z" });
  const headers = { authorization: `Bearer ${await token("root", [ADMIN])}` };
  const { text } = await send(`${server.origin}/metrics`, { headers });
  expect(text).toContain('owlclaw_logins_refused_total{reason="token_missing"} 1');
  expect(text).toMatch(/owlclaw_logins_refused_total\{reason="token_(?:malformed|algorithm)"\} 1/);
});
