import { afterAll, beforeAll, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { call, rpc, startGoverned, token } from "../integration/governance-lab.ts";
import { until } from "../integration/harness.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";

/** Whoever has no token fills no disk: there is a line in the log, and no row. */
let server: Awaited<ReturnType<typeof startGoverned>>;

beforeAll(async () => {
  server = await startGoverned({ hasAuth: true });
});
afterAll(() => server.stop());

test("calls without a token, or with a wrong one, are logged and leave no row in the ledger", async () => {
  const good = await token("ada");
  const wrong = [undefined, "nonsense", `${good.slice(0, -4)}AAAA`, good.split(".").slice(0, 2).join(".")];
  const attempts = wrong.flatMap((bearer) => {
    const as = bearer === undefined ? {} : { token: bearer };
    return [
      call(server.url, "echo", { text: "flood" }, as),
      rpc(server.url, "resources/read", { uri: "fixture://greeting" }, as),
      rpc(server.url, "tools/list", {}, as),
    ];
  });
  for (const { status } of await Promise.all(attempts)) expect(status).toBe(401);
  const refused = await until(
    () => server.logs.filter(({ message, kind }) => message === "request refused" && kind === "unauthorized"),
    ({ length }) => length >= attempts.length,
  );
  expect(refused).toHaveLength(attempts.length);
  expect(JSON.stringify(refused)).not.toContain(good.split(".")[2]);
  // One that is let in, so that an empty ledger is not for another reason.
  expect((await call(server.url, "echo", { text: "in" }, { token: good })).body.result).toBeDefined();
  const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
  const rows = await reader.list({}, { limit: 100 });
  await reader.close();
  expect(rows.map(({ principal, name }) => [principal, name])).toEqual([["ada", "echo"]]);
});
