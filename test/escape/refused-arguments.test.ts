import { afterAll, beforeAll, expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { call, startGoverned } from "../integration/governance-lab.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";

/** A harmless refusal first, so that it stands for what is tried after it. */
let server: Awaited<ReturnType<typeof startGoverned>>;

beforeAll(async () => {
  const rules = [{ id: "no-shadow", when: 'tool == "echo" && args.text.contains("shadow")', effect: "deny" }];
  server = await startGoverned({ governance: { rules } });
});

afterAll(() => server.stop());

test("a refusal does not hide what is tried within the minute after it", async () => {
  for (const text of ["shadow play", "cat /etc/shadow", "cat /etc/shadow", "shadow play"]) {
    const { body } = await call(server.url, "echo", { text });
    expect(body.error?.data).toMatchObject({ kind: "governance_denied" });
  }
  const reader = await openReader({ config: ledgerConfig(), dataFolder: server.root });
  const rows = await reader.list({ name: "echo" }, { limit: 10, order: "oldest" });
  await reader.close();
  expect(rows.map(({ args }) => args)).toEqual(['{"text":"shadow play"}', '{"text":"cat /etc/shadow"}']);
});
