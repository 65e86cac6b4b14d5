import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp } from "./harness.ts";
import { postJson } from "./http-client.ts";
import { PIXEL, REFUND, SHOP, skillFolder } from "./skill-fixture.ts";

const SECRET = "a secret of at least thirty-two bytes";
const dir = skillFolder({
  ...SHOP,
  "support/tone/assets/page.html": "<script>alert(1)</script>",
  "support/tone/Q&A.md": "?",
});
const ETAG = `"sha256:${createHash("sha256").update(REFUND).digest("hex")}"`;

let server: HttpServer;

beforeAll(async () => {
  server = await startHttp({ config: { skills: { dir }, handlers: { paths: [] } } });
});

afterAll(() => server.stop());

function get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
  return fetch(`${server.origin}/skills/${path}`, { method, headers });
}

/** As the path stands: `fetch` would tidy it up. */
function statusOf(path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(server.origin);
    request({ hostname, port, path }, (response) => resolve(response.resume().statusCode))
      .on("error", reject)
      .end();
  });
}

describe("GET /skills/{category}/{name}", () => {
  test("[004-R7.1] [004-R7.4] [004-R7.6] gives the text, its type and its entity tag", async () => {
    const response = await get("ecommerce/refund");
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(REFUND);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/markdown; charset=utf-8",
      "content-length": String(Buffer.byteLength(REFUND)),
      etag: ETAG,
      "last-modified": expect.stringMatching(/GMT$/),
      "accept-ranges": "bytes",
      "cache-control": "private, no-cache",
    });
    expect(await (await get("ecommerce/refund/SKILL.md")).text()).toBe(REFUND);
    expect(Buffer.from(await (await get("ecommerce/refund/assets/logo.png")).arrayBuffer())).toEqual(PIXEL);
    expect(await (await get("support/tone/Q%26A.md")).text()).toBe("?");
  });

  test("[004-R7.7] If-None-Match: 304 without a body, also weak, in a list, and for HEAD", async () => {
    for (const tag of [ETAG, `W/${ETAG}`, `"other", ${ETAG}`, "*"]) {
      const response = await get("ecommerce/refund", { "if-none-match": tag });
      expect([response.status, response.headers.get("etag"), await response.text()]).toEqual([304, ETAG, ""]);
    }
    expect((await get("ecommerce/refund", { "if-none-match": ETAG }, "HEAD")).status).toBe(304);
    expect((await get("ecommerce/refund", { "if-none-match": '"other"' })).status).toBe(200);
  });

  test("[004-R7.5] Range: 206, the end of the file, and 416 beyond it", async () => {
    const part = await get("ecommerce/refund", { range: "bytes=4-9" });
    expect([part.status, part.headers.get("content-range"), await part.text()]).toEqual([
      206,
      `bytes 4-9/${Buffer.byteLength(REFUND)}`,
      REFUND.slice(4, 10),
    ]);
    expect(await (await get("ecommerce/refund", { range: "bytes=-6" })).text()).toBe("once.\n");
    const beyond = await get("ecommerce/refund", { range: "bytes=99999-" });
    expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, `bytes */${Buffer.byteLength(REFUND)}`]);
    expect((await get("ecommerce/refund", { range: "bytes=0-1,4-5" })).status).toBe(200);
  });

  test("If-Range: the part while the file is the same, the whole afterwards", async () => {
    expect((await get("ecommerce/refund", { range: "bytes=0-2", "if-range": ETAG })).status).toBe(206);
    expect((await get("ecommerce/refund", { range: "bytes=0-2", "if-range": '"other"' })).status).toBe(200);
  });

  test("HEAD says the same without the body", async () => {
    const response = await get("ecommerce/refund", {}, "HEAD");
    expect([response.status, response.headers.get("etag"), response.headers.get("content-length")]).toEqual([
      200,
      ETAG,
      String(Buffer.byteLength(REFUND)),
    ]);
    expect(await response.text()).toBe("");
  });

  test("what is not there is 404, what is no path of a skill 400, another method 405", async () => {
    for (const path of ["ecommerce/nothing", "ecommerce", "support/broken", "ecommerce/refund/assets"])
      expect((await get(path)).status).toBe(404);
    for (const path of ["ecommerce/%2e%2e/x", "ecommerce/..%2f..%2fetc%2fpasswd", "a%00b", "*", "a//b", "%ff"])
      expect([path, await statusOf(`/skills/${path}`)]).toEqual([path, 400]);
    expect([400, 404]).toContain(await statusOf("/skills/../../etc/passwd"));
    expect((await get("ecommerce/refund", {}, "PUT")).status).toBe(405);
  });

  test("a page among the files cannot run as one of this server", async () => {
    const { headers } = await get("support/tone/assets/page.html");
    expect([headers.get("content-security-policy"), headers.get("x-content-type-options")]).toEqual([
      "sandbox",
      "nosniff",
    ]);
  });

  test("asks for a token where everything does", async () => {
    const guarded = await startHttp({
      config: { skills: { dir }, handlers: { paths: [] }, auth: { enabled: true, jwt: { secret: SECRET } } },
    });
    const refused = await fetch(`${guarded.origin}/skills/ecommerce/refund`);
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, expect.stringMatching(/^Bearer/)]);
    expect((await fetch(`${guarded.origin}/skills/no/such`)).status).toBe(401);
    await guarded.stop();
  });
});

test("a read tells what is left, and one too many is 429 with the time to wait", async () => {
  const governance = { defaults: { callsPerMinute: 2 } };
  const root = mkdtempSync(path.join(tmpdir(), "owlclaw-skills-http-"));
  const limited = await startHttp({
    config: { skills: { dir }, handlers: { paths: [] }, governance, sandbox: { root, enabled: false } },
  });
  try {
    const read = () => fetch(`${limited.origin}/skills/ecommerce/refund`);
    const [first, second, third] = [await read(), await read(), await read()];
    expect(first.headers.get("ratelimit-policy")).toContain('"minute";q=2;w=60');
    expect(second.headers.get("ratelimit")).toMatch(/^"minute";r=0;t=\d+/);
    expect([first.status, second.status, third.status]).toEqual([200, 200, 429]);
    expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(third.headers.get("ratelimit")).toMatch(/^"minute";r=0;t=\d+$/);
    const { headers } = await postJson(limited.url, {
      jsonrpc: "2.0",
      id: 1,
      method: "resources/read",
      params: { uri: "skill://ecommerce/refund" },
    });
    expect(headers.get("ratelimit-policy")).toBe('"minute";q=2;w=60');
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  } finally {
    await limited.stop();
    rmSync(root, { recursive: true, force: true });
  }
});
