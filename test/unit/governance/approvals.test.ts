import { expect, test } from "vitest";
import { type ApprovalRequest, Approvals } from "../../../src/governance/approval/approvals.ts";

const HOUR_MS = 3_600_000;

function desk() {
  const clock = { nowMs: 0 };
  const approvals = new Approvals({ timeoutMs: HOUR_MS, nowMs: () => clock.nowMs });
  const ask = (args: unknown = {}) => approvals.request(requestOf(args), () => undefined);
  const approved = async (args: unknown = {}) => {
    const verdict = ask(args);
    approvals.approve(approvals.list().at(-1)?.id ?? "", "root");
    const given = await verdict;
    if (given.kind !== "approved") throw new Error(`it is ${given.kind}`);
    return given;
  };
  return { clock, approvals, ask, approved };
}

function requestOf(args: unknown): ApprovalRequest {
  const asked = { principal: "ada", label: undefined, kind: "tool", name: "echo", args };
  return { ...asked, rule: "rule", reason: undefined, traceId: "" };
}

test("a yes that is given back ends when it would have ended, however often its call comes again", async () => {
  const { clock, approvals, ask, approved } = desk();
  const yes = await approved();
  expect(yes).toEqual({ kind: "approved", by: "root", expiresAtMs: HOUR_MS });
  for (const nowMs of [1, HOUR_MS / 2, HOUR_MS - 1]) {
    clock.nowMs = nowMs;
    approvals.restore(requestOf({}), yes);
    expect(await ask()).toEqual(yes);
  }
  clock.nowMs = HOUR_MS;
  approvals.restore(requestOf({}), yes);
  void ask();
  expect(approvals.list()).toHaveLength(1);
  approvals.close();
});

test("a yes is given back though others have taken all places", async () => {
  const { approvals, ask, approved } = desk();
  const yes = await approved();
  const others = Array.from({ length: 20 }, (_, index) => ask({ index }));
  expect(await ask({ index: "one more" })).toEqual({ kind: "overloaded" });
  approvals.restore(requestOf({}), yes);
  expect(await ask()).toEqual(yes);
  approvals.close();
  await Promise.all(others);
});

test("a yes that is given back is used before the same call waits for another", async () => {
  const { approvals, ask, approved } = desk();
  const yes = await approved();
  const same = ask();
  approvals.restore(requestOf({}), yes);
  expect(await ask()).toEqual(yes);
  approvals.close();
  expect(await same).toEqual({ kind: "expired" });
});

test("who leaves is told apart from who was not answered in time", async () => {
  const { approvals } = desk();
  const leaves: (() => void)[] = [];
  const left = approvals.request(requestOf({}), (leave) => leaves.push(leave));
  for (const leave of leaves) leave();
  expect(await left).toEqual({ kind: "gone" });
  approvals.close();
});
