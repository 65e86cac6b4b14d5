import { mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { policySchema } from "../../../src/config/governance-schema.ts";
import { Approvals } from "../../../src/governance/approval/approvals.ts";
import { FloodGuard } from "../../../src/governance/flood-guard.ts";
import { explain } from "../../../src/governance/explain.ts";
import { toMatcher } from "../../../src/governance/policy/pattern.ts";
import { Policy } from "../../../src/governance/policy/policy.ts";
import { readPolicyFile, policyWarnings } from "../../../src/governance/policy/read-policy-file.ts";
import { FREE, type Subject } from "../../../src/governance/subject.ts";

const folder = mkdtempSync(join(tmpdir(), "owlclaw-policy-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function policy(config: Record<string, unknown>): Policy {
  return new Policy(policySchema.parse(config));
}

const SHELL = tool("shell_exec", "shell.exec", "execute_command");

function tool(name: string, ...others: string[]): Subject {
  return {
    kind: "tool",
    name,
    names: [name, ...others],
    scope: "exec",
    price: FREE,
    confirm: undefined,
    timeoutMs: 1000,
  };
}

interface Asking {
  readonly client?: string;
  readonly groups?: readonly string[];
  readonly label?: string;
  readonly args?: unknown;
  readonly subject?: Subject;
}

function ask(of: Policy, { client = "ada", groups = [], label, args = {}, subject = SHELL }: Asking = {}) {
  return explain(of, { client, groups, claims: {}, label, subject, args });
}

describe("a narrower layer can only tighten", () => {
  test("limits: the lowest of those that are set, and 0 sets none", () => {
    const of = policy({
      defaults: { callsPerMinute: 10, callsPerDay: 100 },
      groups: { ops: { callsPerMinute: 50, callsPerDay: 0 } },
      clients: { ada: { callsPerDay: 7 } },
    });
    const limits = ask(of, { groups: ["ops"] }).limits.map(({ rule, limit }) => [rule, limit]);
    expect(limits).toContainEqual(["defaults.callsPerMinute", 10]);
    expect(limits).toContainEqual(["clients.ada.callsPerDay", 7]);
  });

  test("visible is an intersection, hidden and deny are unions", () => {
    const of = policy({
      defaults: { visible: ["shell_*", "code_*"] },
      clients: { ada: { visible: ["*"], allow: ["*"] }, bob: { visible: ["code_*"] } },
      groups: { ops: { hidden: ["code_run"] }, quiet: { deny: ["scope:exec"] } },
    });
    expect(ask(of, { subject: tool("file_read") })).toMatchObject({ decision: "deny", rule: "defaults.visible" });
    expect(ask(of)).toMatchObject({ decision: "allow" });
    expect(ask(of, { client: "bob" })).toMatchObject({ decision: "deny", rule: "clients.bob.visible" });
    expect(ask(of, { subject: tool("code_run"), groups: ["ops"] })).toMatchObject({ rule: "groups.ops.hidden" });
    expect(ask(of, { groups: ["quiet"] })).toMatchObject({ decision: "deny", rule: "groups.quiet.deny" });
  });

  test("of a caller of many groups every one counts", () => {
    const of = policy({ groups: { interns: { deny: ["*"] }, "temp-*": { callsPerMinute: 3 } } });
    const many = Array.from({ length: 3000 }, (_, index) => `g${index}`);
    expect(ask(of, { groups: many })).toMatchObject({ decision: "allow" });
    expect(ask(of, { groups: [...many, "interns"] })).toMatchObject({ decision: "deny", rule: "groups.interns.deny" });
    expect(ask(of, { groups: [...many, "temp-7"] }).limits).toContainEqual(
      expect.objectContaining({ rule: "groups.temp-*.callsPerMinute", limit: 3 }),
    );
    const rules = [{ id: "last", when: '"interns" in groups', effect: "deny" }];
    expect(ask(policy({ rules }), { groups: [...many, "interns"] })).toMatchObject({ rule: "rules.last" });
  });

  test("an operator's yes is not replaced by a client's", () => {
    const of = policy({
      tools: { "shell_*": { confirm: "operator" } },
      clients: { ada: { confirm: { "*": "client" } } },
    });
    expect(ask(of)).toMatchObject({ decision: "confirm", confirm: "operator", rule: "tools.shell_*.confirm" });
    expect(ask(of, { subject: tool("add") })).toMatchObject({ decision: "confirm", confirm: "client" });
  });

  test("a label has its own count, below its principal's", () => {
    const of = policy({ labels: { "cur*": { callsPerMinute: 5 } } });
    const counts = ask(of, { label: "cursor" }).limits.filter(({ rule }) => rule.endsWith("PerMinute"));
    expect(counts.map(({ counts: key }) => key)).toEqual(['["principal","ada"]', '["label","ada","cursor"]']);
  });
});

describe("what is set aside before a call", () => {
  const MICRO = 0.000_001;
  const egress = { cost: { perEgressMb: 0.1 } };
  test.each([
    ["its maximum", { cost: { fixed: 1 }, maxCost: 3 }, {}, 3],
    ["the fixed part and the longest time", { cost: { fixed: 1, perSecond: 2 } }, {}, 3],
    ["the least there is, where only the network costs", egress, {}, MICRO],
    [
      "the least there is, where only time costs and nobody says how long",
      { cost: { perSecond: 1 } },
      { timeoutMs: 0 },
      MICRO,
    ],
    ["the least there is, where a handler may report costs", {}, { mayCharge: true }, MICRO],
    ["the least there is, where the network costs and the maximum is nothing", { ...egress, maxCost: 0 }, {}, MICRO],
    ["nothing, where a handler may report costs and the maximum is nothing", { maxCost: 0 }, { mayCharge: true }, 0],
    ["nothing, where nothing costs", { cost: 0 }, {}, 0],
  ])("%s", (_what, entry, subject, reserves) => {
    const of = policy({ tools: { shell_exec: entry } });
    expect(ask(of, { subject: { ...SHELL, ...subject } }).reserves).toBe(reserves);
  });
});

describe("names", () => {
  test.each(["shell_exec", "shell.exec", "execute_command", "shell*", "?hell_exec", "scope:exec"])(
    "a rule on %s hits the operation under all its names",
    (pattern) => {
      expect(ask(policy({ defaults: { hidden: [pattern] } })).decision).toBe("deny");
    },
  );

  test("prompts are meant only where they are named as such", () => {
    const prompt: Subject = { ...tool("review"), kind: "prompt", scope: undefined };
    expect(ask(policy({ defaults: { hidden: ["review"] } }), { subject: prompt }).decision).toBe("allow");
    expect(ask(policy({ defaults: { hidden: ["prompt:rev*"] } }), { subject: prompt }).decision).toBe("deny");
    expect(ask(policy({ defaults: { visible: ["file_*"] } }), { subject: prompt }).decision).toBe("deny");
  });

  test("a glob with many stars stays fast on a long text", () => {
    const isMeant = toMatcher(`${"a*".repeat(100)}b`);
    expect(isMeant("a".repeat(20_000))).toBe(false);
  });
});

describe("rules", () => {
  test("the first that holds decides", () => {
    const of = policy({
      rules: [
        { id: "ops", when: '"ops" in groups', effect: "allow" },
        { id: "night", when: 'tool == "shell_exec" && args.command.startsWith("rm")', effect: "deny", reason: "no" },
        { id: "ask", when: 'scope == "exec"', effect: "confirm" },
      ],
    });
    expect(ask(of, { args: { command: "rm -rf /" } })).toMatchObject({
      decision: "deny",
      rule: "rules.night",
      reason: "no",
    });
    expect(ask(of, { args: { command: "rm" }, groups: ["ops"] })).toMatchObject({
      decision: "allow",
      rule: "rules.ops",
    });
    expect(ask(of, { args: { command: "ls" } })).toMatchObject({ decision: "confirm", confirm: "operator" });
  });

  test("one that cannot be worked out decides against the call, unless it would have allowed it", () => {
    const deny = policy({ rules: [{ id: "x", when: 'args.missing == "a"', effect: "deny" }] });
    expect(ask(deny)).toMatchObject({ decision: "deny", reason: expect.stringContaining("cannot be worked out") });
    const allow = policy({
      rules: [
        { id: "x", when: 'args.missing == "a"', effect: "allow" },
        { id: "y", when: "true", effect: "deny" },
      ],
    });
    expect(ask(allow)).toMatchObject({ decision: "deny", rule: "rules.y" });
  });

  test.each([
    ["1 +", "Unexpected token"],
    ["nobody == 1", "Unknown variable"],
    ["principal", "must give true or false"],
    ["principal == 1", "no such overload"],
  ])("%s is refused when it is read", (when, problem) => {
    expect(() => policy({ rules: [{ id: "x", when, effect: "deny" }] })).toThrow(new RegExp(problem, "i"));
  });

  test.each([
    ["keys of arguments", 'args.exists(key, key.matches(".*x.*"))', { args: { ["a".repeat(10_001)]: 1 } }],
    ["texts inside arguments", 'args.list.exists(text, text.matches("x"))', { args: { list: ["a".repeat(10_001)] } }],
    ["labels", 'label.matches("x")', { label: "a".repeat(10_001) }],
    ["names of clients", 'principal.matches("x")', { client: "a".repeat(10_001) }],
    ["groups", 'groups.exists(group, group.matches("x"))', { groups: ["a".repeat(10_001)] }],
  ])("%s that are too long for a pattern are refused", (_what, when, asking) => {
    const of = policy({ rules: [{ id: "x", when, effect: "deny" }] });
    expect(ask(of, asking)).toMatchObject({ decision: "deny", reason: expect.stringContaining("too long") });
  });

  test("what a rule with a pattern does not name may be as long as it likes", () => {
    const of = policy({ rules: [{ id: "x", when: 'tool.matches("^code_")', effect: "deny" }] });
    expect(ask(of, { args: { content: "a".repeat(1_000_000) } })).toMatchObject({ decision: "allow", lookedAt: [] });
  });

  test("a pattern has 30 ms, over many texts and over claims too", () => {
    const many = policy({ rules: [{ id: "x", when: 'args.list.exists(t, t.matches(".*b.*"))', effect: "deny" }] });
    const list = Array.from({ length: 400 }, () => "a".repeat(10_000));
    expect(ask(many, { args: { list } })).toMatchObject({
      decision: "deny",
      reason: expect.stringContaining("30 ms"),
    });
    const signed = policy({ rules: [{ id: "x", when: 'claims.note.matches(".*a.*b.*c")', effect: "deny" }] });
    const claims = { note: "a".repeat(1500) };
    const asked = { client: "ada", groups: [], claims, label: undefined, subject: SHELL, args: {} };
    expect(explain(signed, asked)).toMatchObject({ decision: "deny", reason: expect.stringContaining("30 ms") });
  });

  test("ids are unique", () => {
    const rule = { id: "x", when: "true", effect: "allow" };
    expect(() => policy({ rules: [rule, rule] })).toThrow('already a rule with the id "x"');
  });
});

test("the revision names the content, not the order of its keys", () => {
  const one = policy({ clients: { a: { callsPerDay: 1, callsPerMinute: 2 } } });
  const two = policy({ clients: { a: { callsPerMinute: 2, callsPerDay: 1 } } });
  expect(one.revision).toBe(two.revision);
  expect(policy({ clients: { a: { callsPerMinute: 3 } } }).revision).not.toBe(one.revision);
});

test.each([
  [{ defaults: { deny: ["shell_exec"] } }, "everybody"],
  [{ clients: { ada: { hidden: ["execute_command"] } } }, 'the client "ada"'],
  [{ groups: { ops: { deny: ["shell.*"] } } }, 'the group "ops"'],
  [{ rules: [{ id: "x", when: 'tool == "shell_exec"', effect: "deny" }] }, "everybody"],
])("a policy that refuses shell_exec and not code_run gets a warning", (config, who) => {
  expect(policyWarnings(policy(config))).toEqual([expect.stringContaining(who)]);
  expect(policyWarnings(policy({ defaults: { deny: ["scope:exec"] } }))).toEqual([]);
});

const LABELLED = 'label == "trusted"';

test.each([
  ["lets through", [{ id: "x", when: LABELLED, effect: "allow" }], "rules[0] (x): when: anyone can send any label"],
  [
    "asks the client before another refuses",
    [
      { id: "x", when: `tool == "a" && (${LABELLED})`, effect: "confirm", confirm: "client" },
      { id: "y", when: "true", effect: "deny" },
    ],
    "put this rule behind those that are stricter",
  ],
  [
    "asks the client before another asks the operator",
    [
      { id: "x", when: LABELLED, effect: "confirm", confirm: "client" },
      { id: "y", when: "true", effect: "confirm" },
    ],
    "put this rule behind those that are stricter",
  ],
])("a rule that looks at the label and %s is refused when it is read", (_what, rules, problem) => {
  expect(() => policy({ rules })).toThrow(problem);
});

test.each([
  ["refuses", [{ id: "x", when: LABELLED, effect: "deny" }]],
  [
    "asks, behind all that refuse",
    [
      { id: "y", when: 'tool == "a"', effect: "deny" },
      { id: "x", when: LABELLED, effect: "confirm" },
    ],
  ],
  ["looks at an argument of that name", [{ id: "x", when: 'args.label == "label"', effect: "allow" }]],
])("a rule that %s may stand", (_what, rules) => {
  expect(policy({ rules }).revision).toBeDefined();
});

test("a price for the network without a maximum gets a warning where there is a budget", () => {
  const tools = { "code_*": { cost: { perEgressMb: 1 } }, browser_open: { cost: { perEgressMb: 1 }, maxCost: 5 } };
  const budgets = [{ defaults: { monthlyBudget: 5 } }, { clients: { ada: { monthlyBudget: 5 } } }];
  for (const budget of budgets)
    expect(policyWarnings(policy({ tools, ...budget }))).toEqual([expect.stringContaining("tools.code_*")]);
  expect(policyWarnings(policy({ tools }))).toEqual([]);
});

test("a rule that refuses some arguments of shell_exec gets no warning, and hides none", () => {
  const rules = [{ id: "x", when: 'tool == "shell_exec" && args.command.contains("rm")', effect: "deny" }];
  expect(policyWarnings(policy({ rules }))).toEqual([]);
  expect(policyWarnings(policy({ rules, clients: { ada: { deny: ["shell_exec"] } } }))).toEqual([
    expect.stringContaining('the client "ada"'),
  ]);
});

describe("policy files", () => {
  const base = policySchema.parse({ defaults: { callsPerMinute: 5 } });
  const write = (name: string, content: string | Buffer): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };

  test("replace the configuration key by key; links are followed", async () => {
    const file = write("good.yaml", "defaults: { callsPerDay: 9 }\nclients: { ada: { hidden: ['*'] } }\n");
    symlinkSync(file, join(folder, "link.yaml"));
    const read = await readPolicyFile(join(folder, "link.yaml"), base);
    expect(read).toMatchObject({
      defaults: { callsPerMinute: 5, callsPerDay: 9 },
      clients: { ada: { hidden: ["*"] } },
    });
  });

  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [${"*a,".repeat(9)}]\nc: &c [${"*b,".repeat(9)}]\nd: [${"*c,".repeat(9)}]\n`;
  test.each([
    ["rubbish", Buffer.from([0xff, 0xfe, 0x00, 0x80]), "not UTF-8"],
    ["no YAML", "defaults: [", "Flow sequence"],
    ["a list", "- 1", "must hold keys"],
    ["unknown keys", "defaults: { visibel: ['*'] }", "visibel"],
    ["server settings", "failOpen: true", "failOpen"],
    ["a wrong type", "clients: { ada: { callsPerMinute: many } }", "clients.ada.callsPerMinute"],
    ["a huge file", `# ${"x".repeat(1024 * 1024)}`, "larger than"],
    ["an alias bomb", bomb, "aliases"],
    ["two of the same key", "rules: []\nrules: []", "unique"],
  ])("with %s are refused", async (_name, content, problem) => {
    await expect(readPolicyFile(write("bad.yaml", content), base)).rejects.toThrow(problem);
  });

  test("that are no files are refused at once", async () => {
    mkdirSync(join(folder, "directory"));
    execFileSync("mkfifo", [join(folder, "pipe")]);
    for (const name of ["directory", "pipe", "missing"])
      await expect(readPolicyFile(join(folder, name), base)).rejects.toThrow(/not a file|cannot be read/);
    await expect(readPolicyFile("/dev/zero", base)).rejects.toThrow("not a file");
  });
});

describe("approvals", () => {
  const request = {
    principal: "ada",
    label: undefined,
    kind: "tool",
    name: "x",
    args: { a: 1, b: 2 },
    rule: "r",
    reason: undefined,
    traceId: "t",
  };
  const stay = (): void => undefined;

  test("a yes is for these arguments and for one call", async () => {
    const approvals = new Approvals({ timeoutMs: 60_000 });
    const first = approvals.request(request, stay);
    const second = approvals.request({ ...request, args: { b: 2, a: 1 } }, stay);
    const other = approvals.request({ ...request, args: { a: 1, b: 3 } }, stay);
    expect(approvals.list()).toHaveLength(2);
    const [{ id } = { id: "" }] = approvals.list();
    expect(approvals.approve(id, "root")).toBe(true);
    expect(await first).toMatchObject({ kind: "approved", by: "root" });
    approvals.close();
    expect(await second).toEqual({ kind: "expired" });
    expect(await other).toEqual({ kind: "expired" });
  });

  test("a client that gave up may come back for it, once", async () => {
    const approvals = new Approvals({ timeoutMs: 60_000 });
    let leave = stay;
    const gone = approvals.request(request, (how) => (leave = how));
    leave();
    expect(await gone).toEqual({ kind: "gone" });
    const [{ id } = { id: "" }] = approvals.list();
    approvals.approve(id, "root");
    expect(await approvals.request(request, stay)).toMatchObject({ kind: "approved", by: "root" });
    void approvals.request(request, stay);
    expect(approvals.list()).toHaveLength(1);
    approvals.close();
  });

  test("wait in bounds for each principal", async () => {
    const approvals = new Approvals({ timeoutMs: 60_000 });
    for (let n = 0; n < 20; n++) void approvals.request({ ...request, args: n }, stay);
    expect(await approvals.request({ ...request, args: "more" }, stay)).toEqual({ kind: "overloaded" });
    void approvals.request({ ...request, principal: "bob" }, stay);
    expect(approvals.list()).toHaveLength(21);
    approvals.close();
  });
});

test("a flood meets the guard, and time lets it through again", () => {
  let now = 0;
  const guard = new FloodGuard(() => now);
  const limit = { perSecond: 10, burst: 20 };
  for (let n = 0; n < 20; n++) guard.check("ada", limit);
  expect(() => guard.check("ada", limit)).toThrow("not even read");
  guard.check("bob", limit);
  now = 100;
  guard.check("ada", limit);
  expect(() => guard.check("ada", limit)).toThrow("not even read");
});
