import { describe, expect, test } from "vitest";
import { isOwlError } from "../../src/errors/owl-error.ts";
import { assembleGoverned } from "../integration/assembled-lab.ts";
import { skill, skillFolder } from "../integration/skill-fixture.ts";

/** One thing has many URIs: escaped, with a query, by a detour. What a policy says of it must hold for all of them. */
const dir = skillFolder({
  "fin/a/SKILL.md": skill("a", "Numbers."),
  "fin/a/secret.md": "secret",
  "fin/a/open.md": "open",
  "fin/a/my notes.md": "notes",
  "fin/b/SKILL.md": skill("b", "More numbers."),
});

async function governed(governance: Record<string, unknown>) {
  const { pipeline, call } = await assembleGoverned({ governance, skills: { dir } });
  for (const [uri, name] of [
    ["orders://{id}{?format,page}", "order"],
    ["mail://{address}", "mail"],
    ["notes://{folder}/{+path}", "note"],
  ] as const)
    pipeline.registry.addResource({ uri, name, read: (_uri, variables) => JSON.stringify(variables) });
  return { pipeline, call, read: (uri: string) => pipeline.readResource(uri, call) };
}

/** The rule that refused it, or what became of it without one. */
function endOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => "ok",
    (error: unknown) => (isOwlError(error) ? (error.facts["rule"] ?? error.kind) : error),
  );
}

/** What a policy calls it, and the ways to write it that the reader takes for the same. */
const SAME: readonly (readonly [string, readonly string[]])[] = [
  [
    "sandbox://box/secret.txt",
    [
      "sandbox://box/secret.txt",
      "sandbox://box/%73ecret.txt",
      "sandbox://%62ox/secret%2Etxt",
      "sandbox://box/./secret.txt",
      "sandbox://box/x/../secret.txt",
      "sandbox://box/x/%2e%2e/secret.txt",
      "sandbox://box/x%2F..%2fsecret.txt",
      "sandbox://box/../workspace/secret.txt",
      "sandbox://box//workspace/secret.txt",
      "sandbox://box/%2Fworkspace//secret.txt",
      "sandbox://box/secret.txt/",
      "sandbox://box/secret.txt?",
      "sandbox://box/secret.txt?offset=0",
      "sandbox://box/%73ecret.txt?length=9&offset=7",
    ],
  ],
  [
    "orders://42",
    ["orders://42", "orders://%34%32", "orders://4%32", "orders://42?", "orders://42?page=1&format=json"],
  ],
  ["mail://ada@example.com", ["mail://ada@example.com", "mail://ada%40example.com", "mail://%61da@example%2ecom"]],
  ["notes://my box/a b", ["notes://my box/a b", "notes://my%20box/a%20b", "notes://m%79%20box/a b"]],
  ["notes://my%20box/a%20b", ["notes://my box/a b", "notes://my%20box/a%20b", "notes://m%79%20box/a b"]],
  ["notes://box/a/b", ["notes://box/a/b", "notes://box/a%2Fb", "notes://box/%61%2fb"]],
  [
    "skill://fin/a/secret.md",
    ["skill://fin/a/secret.md", "skill://fin/a/%73ecret.md", "skill://%66in/%61/secret%2emd"],
  ],
  [
    "skill://fin/a/my notes.md",
    ["skill://fin/a/my notes.md", "skill://fin/a/my%20notes.md", "skill://fin/a/m%79 notes.md"],
  ],
  ["skill://fin/b", ["skill://fin/b", "skill://fin/%62", "skill://fin/b/SKILL.md", "skill://fin/b/%53KILL.md"]],
  ["skill://fin/b/SKILL.md", ["skill://fin/b", "skill://fin/b/SKILL.md", "skill://fin/b/SKILL%2Emd"]],
];

/** As rules see it: what is written otherwise above is written so. */
const AS_RULES_SEE = new Map([
  ["notes://my box/a b", "notes://my%20box/a%20b"],
  ["skill://fin/a/my notes.md", "skill://fin/a/my%20notes.md"],
  ["skill://fin/b/SKILL.md", "skill://fin/b"],
]);

describe.each(SAME)("%s", (named, written) => {
  test.each(["deny", "hidden"])("cannot be read or watched under any URI when it is in %s", async (key) => {
    const { pipeline, call, read } = await governed({ defaults: { [key]: [named] } });
    const rule = `defaults.${key}`;
    for (const uri of written) {
      const ends = [await endOf(read(uri)), await endOf(pipeline.subscribe(uri, call))];
      expect([uri, ...ends]).toEqual([uri, rule, rule]);
    }
  });

  test("is what a rule sees as its uri, whichever was asked for", async () => {
    const seen = AS_RULES_SEE.get(named) ?? named;
    const { read } = await governed({ rules: [{ id: "closed", when: `uri == "${seen}"`, effect: "deny" }] });
    for (const uri of written) expect([uri, await endOf(read(uri))]).toEqual([uri, "rules.closed"]);
  });

  test("is limited under all of its URIs together", async () => {
    const { read } = await governed({ tools: { [named]: { callsPerMinute: 1 } } });
    const [first = "", ...others] = written;
    await read(first).catch(() => undefined);
    const rule = `tools.${named}.callsPerMinute`;
    for (const uri of others) expect([uri, await endOf(read(uri))]).toEqual([uri, rule]);
  });
});

test.each([
  ["a file whose name has the sign in it", "sandbox://box/%2573ecret.txt", "resource_not_found"],
  ["a file outside the workspace", "sandbox://box//secret.txt", "resource_not_found"],
  ["another scheme", "SANDBOX://box/secret.txt", "resource_not_found"],
  ["a fragment", "sandbox://box/secret.txt#x", "resource_not_found"],
  ["half a character", "sandbox://box/\ud800secret.txt", "resource_not_found"],
  ["an empty part", "skill://fin/a//secret.md", "invalid_params"],
  ["a dot", "skill://fin/a/./secret.md", "invalid_params"],
  ["a way back", "skill://fin/a/x/%2e%2e/secret.md", "invalid_params"],
  ["a hidden slash", "skill://fin/a%2Fsecret.md", "invalid_params"],
  ["a slash at the end", "skill://fin/a/secret.md/", "invalid_params"],
  ["a query", "skill://fin/a/secret.md?x", "invalid_params"],
])("%s is another thing, and gives nothing", async (_what, uri, kind) => {
  const { read } = await governed({ defaults: { deny: ["sandbox://box/secret.txt", "skill://fin/a/secret.md"] } });
  await expect(read(uri)).rejects.toMatchObject({ kind });
});

test("what is escaped twice is read as it was sent, and judged so", async () => {
  const { read } = await governed({ defaults: { deny: ["orders://42"] } });
  await expect(read("orders://%2534%2532")).resolves.toMatchObject({ value: [{ text: '{"id":"%34%32"}' }] });
  const closed = await governed({ defaults: { deny: ["orders://%2534%2532"] } });
  await expect(closed.read("orders://%2534%2532")).rejects.toMatchObject({ kind: "governance_denied" });
});

test("what lets through is not fooled by a way that leads elsewhere", async () => {
  const { read } = await governed({ defaults: { allow: ["sandbox://*/public/*", "notes://eu/*"] } });
  for (const uri of [
    "sandbox://box/public/../secret.txt",
    "sandbox://box/public/%2e%2e/secret.txt",
    "sandbox://box//workspace/public/..%2Fsecret.txt",
    "notes://eu%2Fx/a",
  ])
    expect([uri, await endOf(read(uri))]).toEqual([uri, "defaults.allow"]);
});

test.each([
  ["sandbox://box/public/a.txt?offset=1", "resource_not_found"],
  ["sandbox://box/%70ublic/a.txt", "resource_not_found"],
  ["orders://4%32", "ok"],
  ["orders://42?format=json", "defaults.allow"],
  ["skill://fin/a/SKILL.md", "ok"],
  ["skill://fin/a/open.md", "ok"],
  ["skill://fin/b", "defaults.allow"],
])("what lets through means %s or not, however it is written", async (uri, end) => {
  const { read } = await governed({ defaults: { allow: ["sandbox://*/public/*", "orders://42", "skill://fin/a"] } });
  expect(await endOf(read(uri))).toBe(end);
});

test("a hidden skill is refused in the same words whether it is there or not, under every URI", async () => {
  const { read } = await governed({ defaults: { hidden: ["skill://fin/b", "skill://fin/none", "skill://off/*"] } });
  const wordsOf = (uri: string): Promise<string> => read(uri).then(String, ({ message }: Error) => message);
  for (const rest of ["", "/SKILL.md", "/%53KILL.md", "/nothing.md"]) {
    expect(await wordsOf(`skill://fin/b${rest}`)).toBe(`the policy refuses the resource "skill://fin/b${rest}"`);
    expect(await wordsOf(`skill://fin/none${rest}`)).toBe(`the policy refuses the resource "skill://fin/none${rest}"`);
  }
  expect(await wordsOf("skill://%6fff/x")).toBe('the policy refuses the resource "skill://%6fff/x"');
});
