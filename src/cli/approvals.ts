import type * as z from "zod";
import { loadConfig } from "../config/load.ts";
import { type CommandCall, type CommandAction, UsageError, operatorName } from "./command.ts";
import { toLoadOptions } from "./config-flags.ts";
import { renderTable } from "./table.ts";
import { jsonText, toLine } from "./text.ts";
import type { approvalSchema } from "../governance/approval/approval-service.ts";
import { createInterface } from "node:readline/promises";
import type { Terminal } from "./terminal.ts";

export async function approvalsListCommand({ terminal, flags }: CommandCall): Promise<number> {
  const { config } = await loadConfig(toLoadOptions(flags));
  const { listApprovals } = await import("../operator/control-client.ts");
  const approvals = await listApprovals(config.sandbox.root);
  if (flags["json"] === true) {
    terminal.out(jsonText({ approvals }));
    return 0;
  }
  if (approvals.length === 0) {
    terminal.err("No call waits for an approval.\n");
    return 0;
  }
  const rows = approvals.map(({ id, principal, name, rule, expiresAtMs, hash, args }) => [
    id,
    principal,
    name,
    rule,
    new Date(expiresAtMs).toISOString(),
    hash.slice(0, HASH_CHARS),
    visible(JSON.stringify(args) ?? ""),
  ]);
  const columns = ["ID", "CLIENT", "TOOL", "RULE", "EXPIRES", "HASH", "ARGUMENTS"];
  const table = renderTable({ columns, rows, width: terminal.width, color: terminal.outColor });
  terminal.out(table);
  const lines = table.split("\n").slice(1);
  const cut = approvals.filter(
    ({ isCut }, row) => isCut || !(lines[row] ?? "").endsWith(toLine(rows[row]?.at(-1) ?? "", Infinity)),
  );
  if (cut.length > 0)
    terminal.err(
      `The arguments of ${cut.map(({ id }) => id).join(", ")} are cut: \`approvals approve ID\` shows the whole call and asks, --json prints it.\n`,
    );
  return 0;
}

export type ListedApproval = z.output<typeof approvalSchema>;

/** Length of the hash in the list, and the shortest prefix that `--hash` accepts: 96 bits in base64url. */
export const HASH_CHARS = 16;

/** Characters that a terminal does not display, or displays as a space. */
const UNSEEN = /(?! )[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Returns the text with undisplayed characters as JSON escapes. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (character) => character.split("").map(escapeUnit).join(""));
}

/** Describes the whole call: nothing is cut, undisplayed characters are escaped. */
export function describeApproval(approval: ListedApproval): string {
  const { principal, label, kind, name, rule, reason, expiresAtMs, hash } = approval;
  const fields: readonly (readonly [string, string | undefined])[] = [
    ["client", principal],
    ["label", label],
    [kind, name],
    ["rule", rule],
    ["reason", reason],
    ["expires", new Date(expiresAtMs).toISOString()],
    ["hash", hash],
  ];
  const lines = fields.flatMap(([title, value]) =>
    value === undefined ? [] : [`${title.padEnd(10)}${visible(value)}`],
  );
  const args = (JSON.stringify(approval.args, null, 2) ?? "none").split("\n").map(visible);
  return `${[...lines, "arguments", ...args].join("\n")}\n`;
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * The decision is recorded under the local user: only the owner of the data folder can reach the server's control
 * socket.
 */
export function approvalsDecide(decision: "approve" | "deny"): CommandAction {
  return async ({ terminal, args, flags }) => {
    const [id = ""] = args;
    const { config } = await loadConfig(toLoadOptions(flags));
    const { decideApproval, listApprovals } = await import("../operator/control-client.ts");
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

/**
 * Whether the operator has seen the whole call: either `--hash` matches its hash, or a person confirms it on the
 * terminal.
 */
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
