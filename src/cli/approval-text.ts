import type { approvalSchema } from "../governance/approval/approval-schema.ts";
import type * as z from "zod";

export type ListedApproval = z.output<typeof approvalSchema>;

/** Enough of a hash to tell calls apart, whatever their clients try. */
export const HASH_CHARS = 16;

/** Characters that a terminal shows as nothing, or as something else. */
const UNSEEN = /(?! )[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** A text with what cannot be seen in it as JSON escapes it. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (character) => character.split("").map(escapeUnit).join(""));
}

/** The whole call, with nothing cut and nothing hidden. */
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
