import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openReader } from "../../src/governance/ledger/open-store.ts";
import { Lifeline } from "../../src/call/lifeline.ts";
import { type Assembled, assembleGoverned } from "../integration/assembled-lab.ts";
import { writeFile } from "../integration/governance-lab.ts";
import { ledgerConfig } from "../unit/governance/ledger/ledger-fixture.ts";
import { makeTool } from "../unit/call/fixture.ts";

/** Ways to have something else done than an operator has said yes to. */
async function asking(governance: object = { defaults: { confirm: { "*": "operator" } } }) {
  const assembled = await assembleGoverned({ governance });
  const { pipeline } = assembled;
  const deploy = makeTool({ name: "deploy", input: { type: "object" } });
  pipeline.registry.addTool(deploy);
  pipeline.registry.addPrompt({ definition: { name: "deploy", run: () => "ran" }, arguments: deploy.input });
  const approvals = pipeline.governance?.governor.approvals;
  if (approvals === undefined) throw new Error("it is governed");
  const asTool = (args: object, call = assembled.call) => pipeline.callTool(deploy, args, call);
  const asPrompt = (args: object, call = assembled.call) => pipeline.getPrompt("deploy", args, call);
  const waiting = () => approvals.list().map(({ kind, args }) => [kind, args]);
  return { ...assembled, approvals, asTool, asPrompt, waiting };
}

/** Leaves a yes behind, for the same call to come back for. */
async function leaveYes(
  { approvals, call }: Assembled & Pick<Awaited<ReturnType<typeof asking>>, "approvals">,
  begin: (call: Assembled["call"]) => Promise<unknown>,
): Promise<void> {
  const life = new Lifeline();
  const gone = begin({ ...call, life });
  await expect.poll(() => approvals.list()).toHaveLength(1);
  life.end();
  await expect(gone).rejects.toMatchObject({ kind: "cancelled" });
  expect(approvals.approve(approvals.list()[0]?.id ?? "", "root")).toBe(true);
}

test("a yes is for the call that comes back for it", async () => {
  const lab = await asking();
  await leaveYes(lab, (call) => lab.asTool({ data: { b: 2, a: 1 } }, call));
  expect(await lab.asTool({ data: { a: 1, b: 2 } })).toMatchObject({ content: [{ text: "ran" }] });
});

test.each<readonly [string, object, object]>([
  ["an object that is sent as a list of its pairs", { data: { a: 1 } }, { data: [["a", 1]] }],
  ["a list of pairs that is sent as an object", { data: [["a", 1]] }, { data: { a: 1 } }],
  ["a text that is sent as a number", { data: "1" }, { data: 1 }],
  ["what is left out and sent as nothing", {}, { data: null }],
])("a yes is not for %s", async (_what, first, second) => {
  const lab = await asking();
  await leaveYes(lab, (call) => lab.asTool(first, call));
  const other = lab.asTool(second).catch((error: unknown) => error);
  await expect.poll(lab.waiting).toEqual([["tool", second]]);
  lab.approvals.close();
  expect(await other).toMatchObject({ kind: "governance_denied" });
});

test("a yes to a prompt is none to the tool of the same name", async () => {
  const lab = await asking();
  const args = { data: "x" };
  await leaveYes(lab, (call) => lab.asPrompt(args, call));
  const other = lab.asTool(args).catch((error: unknown) => error);
  await expect.poll(lab.waiting).toEqual([["tool", args]]);
  lab.approvals.close();
  expect(await other).toMatchObject({ kind: "governance_denied" });
});

interface Priced {
  readonly cost: number;
  readonly monthlyBudget?: number;
  readonly maxCostPerCall?: number;
}

/** A call that waits for a yes under one policy, and gets it under another. */
async function approvedUnder(later: Priced) {
  const policyOf = ({ cost, ...limits }: Priced) =>
    JSON.stringify({ tools: { deploy: { cost, confirm: "operator" } }, defaults: { monthlyBudget: 100, ...limits } });
  const policyFile = writeFile(`priced-${JSON.stringify(later)}.json`, policyOf({ cost: 1 }));
  const lab = await asking({ policyFile });
  const running = lab.asTool({}).catch((error: unknown) => error);
  await expect.poll(() => lab.approvals.list()).toHaveLength(1);
  writeFileSync(policyFile, policyOf(later));
  await lab.refresh();
  expect(lab.approvals.approve(lab.approvals.list()[0]?.id ?? "", "root")).toBe(true);
  const answer = await running;
  const reader = await openReader({ config: ledgerConfig(), dataFolder: lab.root });
  const [row] = await reader.list({ name: "deploy" }, { limit: 1 });
  await reader.close();
  return { answer, costMicros: row?.cost_micros };
}

test("a price that is set while a call waits is what it pays", async () => {
  const { answer, costMicros } = await approvedUnder({ cost: 7 });
  expect(answer).toMatchObject({ content: [{ text: "ran" }] });
  expect(costMicros).toBe(7e6);
});

test.each([
  ["a budget", { cost: 7, monthlyBudget: 5 }, "defaults.monthlyBudget"],
  ["a maximum", { cost: 7, maxCostPerCall: 5 }, "defaults.maxCostPerCall"],
] as const)("%s that is set while a call waits refuses it", async (_what, later, rule) => {
  const { answer, costMicros } = await approvedUnder(later);
  expect(answer).toMatchObject({ kind: "governance_denied", facts: { rule } });
  expect(costMicros).toBe(0);
});
