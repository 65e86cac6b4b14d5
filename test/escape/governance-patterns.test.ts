import { afterAll, beforeAll, expect, test } from "vitest";
import { call, rpc, startGoverned } from "../integration/governance-lab.ts";

/** Texts that are made to keep a rule's pattern busy: the server does nothing else meanwhile. */
let server: Awaited<ReturnType<typeof startGoverned>>;

beforeAll(async () => {
  const rules = [
    { id: "names", when: 'tool.matches(".*secret.*") || uri.matches(".*secret.*")', effect: "deny" },
    { id: "words", when: 'tool == "echo" && args.text.matches(".*a.*b.*c")', effect: "deny" },
  ];
  server = await startGoverned({ governance: { rules } });
});

afterAll(() => server.stop());

const LONG = "s".repeat(12_000);

test.each([
  ["a tool that is not there", "tools/call", { name: LONG, arguments: {} }],
  ["a resource that is not there", "resources/read", { uri: `none://${LONG}` }],
  ["a resource of a template", "resources/read", { uri: `fixture://orders/emea/${LONG}` }],
  [
    "a completion",
    "completion/complete",
    { ref: { type: "ref/resource", uri: LONG }, argument: { name: "a", value: "" } },
  ],
])("the long name of %s is refused by a rule with a pattern, not looked through", async (_what, method, params) => {
  const { body } = await rpc(server.url, method, params);
  expect(body.error?.data).toMatchObject({ kind: "governance_denied", rule: "rules.names" });
  expect(body.error?.message).toContain("too long for matches()");
});

test("a text that is short enough and keeps a pattern busy is refused within seconds", async () => {
  const { body } = await call(server.url, "echo", { text: "a".repeat(1500) });
  expect(body.error?.data).toMatchObject({ kind: "governance_denied", rule: "rules.words" });
  expect(body.error?.message).toContain("matches() took longer than 500 ms");
  const { body: short } = await call(server.url, "echo", { text: "a".repeat(50) });
  expect(short.error).toBeUndefined();
});
