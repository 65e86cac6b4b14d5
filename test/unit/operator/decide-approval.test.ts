import { expect, test } from "vitest";
import { localApprovals } from "../../../src/governance/approval/approval-service.ts";
import { Approvals } from "../../../src/governance/approval/approvals.ts";
import type { LedgerEntry } from "../../../src/governance/ledger/ledger.ts";
import { type DecisionParts, decideApproval } from "../../../src/operator/operator-requests.ts";

const CALL = { principal: "ada", label: undefined, kind: "tool", name: "file_write", args: {} };
const ASKED = { ...CALL, rule: "ask", reason: undefined };

/** A call that waits, and a ledger that does something while it writes. */
function lab(whileWriting: (approvals: Approvals, id: string) => void) {
  const approvals = new Approvals({ timeoutMs: 60_000 });
  const verdict = approvals.request({ ...ASKED, traceId: "0".repeat(32) }, () => undefined);
  const [{ id } = { id: "" }] = approvals.list();
  const rows: Pick<LedgerEntry, "name" | "outcome" | "errorKind">[] = [];
  const parts: DecisionParts = {
    governor: { revision: "1" },
    approvals: localApprovals(approvals),
    ledger: {
      append: async ({ name, outcome, errorKind }) => {
        await Promise.resolve();
        whileWriting(approvals, id);
        return { seq: rows.push({ name, outcome, errorKind }), spendings: [] };
      },
    },
  };
  const decide = (decision: "approve" | "deny"): Promise<boolean> =>
    decideApproval(parts, { id, decision, by: "root", reason: "", transport: "http" });
  return { decide, verdict, rows, approvals };
}

test("a decision that came too late while it was written down is recorded as one of which nothing came", async () => {
  const { decide, verdict, rows } = lab((approvals, id) => approvals.deny(id, "somebody", "the client was paused"));
  expect(await decide("approve")).toBe(false);
  expect(await verdict).toMatchObject({ kind: "denied" });
  expect(rows).toEqual([
    { name: "approval.approve", outcome: "ok", errorKind: undefined },
    { name: "approval.approve", outcome: "failed", errorKind: "route_not_found" },
  ]);
});

test("a decision that cannot be written down is none, and can be made again", async () => {
  let isFull = true;
  const { decide, verdict, rows } = lab(() => {
    if (isFull) throw new Error("the disk is full");
  });
  await expect(decide("approve")).rejects.toThrow("the disk is full");
  isFull = false;
  expect(await Promise.all([decide("approve"), decide("deny")])).toEqual([true, false]);
  expect(await verdict).toMatchObject({ kind: "approved", by: "root" });
  expect(rows).toEqual([{ name: "approval.approve", outcome: "ok", errorKind: undefined }]);
});
