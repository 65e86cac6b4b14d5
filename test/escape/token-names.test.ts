import { afterAll, beforeAll, expect, test } from "vitest";
import { call, startGoverned, token } from "../integration/governance-lab.ts";

/** Names in tokens that stand for something else in the ledger, in limits or in statistics. */
let server: Awaited<ReturnType<typeof startGoverned>>;

beforeAll(async () => {
  server = await startGoverned({ hasAuth: true });
});

afterAll(() => server.stop());

test.each([
  "dashboard",
  "Dashboard",
  "local:root",
  "LOCAL:root",
  "local",
  "(others)",
  "owlclaw",
  "stdio",
  "anonymous",
  "*",
  "\uff44ashboard",
  "local\uff1aroot",
  "\uff08others\uff09",
])("a token for %j is refused", async (name) => {
  const { status, body } = await call(server.url, "echo", { text: "x" }, { token: await token(name) });
  expect([status, body.error?.data]).toMatchObject([401, { reason: "token_claims" }]);
  expect(body.error?.message).toContain("is a reserved name");
});

test.each(["dashboard-team", "locality", "ada@local", "owl"])("a token for %j is accepted", async (name) => {
  const { status, body } = await call(server.url, "echo", { text: "x" }, { token: await token(name) });
  expect([status, body.error]).toEqual([200, undefined]);
});
