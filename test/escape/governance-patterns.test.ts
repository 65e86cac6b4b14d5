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

test.each([
  String.raw`args.text.matches("^(a\x2b)\x2b$")`,
  String.raw`args.text.matches("^(a\u002b)\u002b$")`,
  String.raw`args.text.matches("^(a\053)\053$")`,
])("the rule %s is refused at the start: its pattern hides what it repeats", async (when) => {
  await expect(startGoverned({ governance: { rules: [{ id: "hidden", when, effect: "deny" }] } })).rejects.toThrow(
    /names characters by number/,
  );
});

test.each([`args.text.matches("^${"(a|)".repeat(27)}b$")`, 'args.text.matches // note\n("^(a+)+$")'])(
  "the rule %s is refused at the start: its pattern tries a text in millions of ways, or cannot be found",
  async (when) => {
    const rules = [{ id: "ways", when: `tool == "echo" && ${when}`, effect: "deny" }];
    await expect(startGoverned({ governance: { rules } })).rejects.toThrow(/could take for ever|written out/);
  },
);

test("a text that is short enough and keeps a pattern busy is refused", async () => {
  const { body } = await call(server.url, "echo", { text: "a".repeat(1500) });
  expect(body.error?.data).toMatchObject({ kind: "governance_denied", rule: "rules.words" });
  expect(body.error?.message).toContain("the rules took longer than 30 ms");
  const { body: short } = await call(server.url, "echo", { text: "a".repeat(50) });
  expect(short.error).toBeUndefined();
});
