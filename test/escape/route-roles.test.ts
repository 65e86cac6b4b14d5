import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mintToken } from "../../src/auth/mint-token.ts";
import { ROUTES } from "../../src/transport/http/http-routes.ts";
import { type HttpServerProcess, startHttp } from "./server.ts";

const SECRET = "a secret of a test that is long enough";
const REQUESTS = ROUTES.flatMap(({ path, methods, role }) =>
  methods.map((method) => ({ role, request: `${method} ${path}`, method, path: path.replaceAll(/\{[^}]*\}/g, "0") })),
);

const root = mkdtempSync(join(tmpdir(), "owlclaw-routes-"));
let server: HttpServerProcess;
let token: string;

beforeAll(async () => {
  const skill = join(root, "skills", "shop", "greet");
  mkdirSync(skill, { recursive: true });
  writeFileSync(join(skill, "SKILL.md"), "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n");
  server = await startHttp({
    config: {
      auth: { enabled: true, jwt: { secret: SECRET } },
      skills: { dir: join(root, "skills") },
      sandbox: { root: join(root, "data"), enabled: true, pool: { size: 0 } },
    },
  });
  token = await mintToken({ secret: SECRET, subject: "ada", scopes: [], expiresInSeconds: 600 });
});
afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

async function statusOf({ method, path }: { method: string; path: string }, authorization?: string): Promise<number> {
  const response = await fetch(`${server.origin}${path}`, {
    method,
    redirect: "manual",
    headers: authorization === undefined ? {} : { authorization },
    ...(method === "POST" || method === "PUT" ? { body: "{}" } : {}),
  });
  await response.body?.cancel();
  return response.status;
}

const of = (...roles: string[]): readonly (readonly [string, (typeof REQUESTS)[number]])[] =>
  REQUESTS.filter(({ role }) => roles.includes(role)).map((each) => [each.request, each]);

describe("a caller without a token", () => {
  test.each(of("client", "operator"))("is refused %s", async (_request, each) => {
    expect(await statusOf(each)).toBe(401);
  });

  test.each(of("client", "operator"))("is refused %s with a token that nobody has signed", async (_request, each) => {
    expect(await statusOf(each, `Bearer ${token.slice(0, -4)}AAAA`)).toBe(401);
  });

  test.each(of("anyone"))("is answered %s", async (_request, each) => {
    expect(await statusOf(each)).toBe(200);
  });
});

describe("a client that is no operator", () => {
  test.each(of("operator"))("is refused %s", async (_request, each) => {
    expect(await statusOf(each, `Bearer ${token}`)).toBe(403);
  });

  test.each(of("client").filter(([request]) => request !== "GET /metrics"))("reaches %s", async (_request, each) => {
    expect([401, 403]).not.toContain(await statusOf(each, `Bearer ${token}`));
  });
});
