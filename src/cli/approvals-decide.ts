import { createInterface } from "node:readline/promises";
import { loadConfig } from "../config/load.ts";
import { describeApproval, HASH_CHARS, type ListedApproval } from "./approval-text.ts";
import type { CommandAction } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { operatorName } from "./operator-name.ts";
import type { Terminal } from "./terminal.ts";
import { UsageError } from "./usage-error.ts";

/** Who decides is the user of the machine: only the owner of the data folder can reach the server at all. */
export function approvalsDecide(decision: "approve" | "deny"): CommandAction {
  return async ({ terminal, args, flags }) => {
    const [id = ""] = args;
    const { config } = await loadConfig(toLoadOptions(flags));
    const { decideApproval, listApprovals } = await import("../server/control-client.ts");
    const reason = typeof flags["reason"] === "string" ? flags["reason"] : "";
    const by = operatorName();
    if (decision === "approve") {
      const approval = (await listApprovals(config.sandbox.root)).find((each) => each.id === id);
      if (approval === undefined) throw nothingWaits(id);
      if (!(await isSeen(approval, { terminal, hash: flags["hash"] }))) {
        terminal.err(`${id} still waits.\n`);
        return 1;
      }
    }
    if (!(await decideApproval(config.sandbox.root, { id, decision, by, reason }))) throw nothingWaits(id);
    terminal.err(decision === "approve" ? `${id} may run, once.\n` : `${id} is refused.\n`);
    return 0;
  };
}

/** Whether the operator has seen the whole call: its hash says so, or a person at the terminal. */
async function isSeen(
  approval: ListedApproval,
  { terminal, hash }: { readonly terminal: Terminal; readonly hash: unknown },
): Promise<boolean> {
  const { id } = approval;
  if (typeof hash === "string") {
    if (hash.length >= HASH_CHARS && approval.hash.startsWith(hash)) return true;
    throw new UsageError(`the call that waits under ${id} does not have this hash; \`approvals list\` shows its hash`);
  }
  if (approval.isCut)
    throw new UsageError(
      `the arguments of ${id} are not whole here, since it waits on another server: approve it on that one, or with --hash`,
    );
  if (!process.stdin.isTTY || !terminal.errIsTty)
    throw new UsageError(
      "approve asks on a terminal, and there is none: look at the call with `approvals list --json`, and pass its hash with --hash",
    );
  terminal.err(describeApproval(approval));
  const question = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await question.question("Approve this call? [y/N] ");
  question.close();
  return /^y(es)?$/i.test(answer.trim());
}

function nothingWaits(id: string): UsageError {
  return new UsageError(`no call waits under ${id}; \`owlclaw mcp-server approvals list\` shows those that do`);
}
