import { explain, type Explanation } from "../governance/explain.ts";
import { GROUP_FLAG, MAX_GROUP_FLAGS } from "../governance/policy/asker-policy.ts";
import type { LedgerRow } from "../ledger/row.ts";
import type { LedgerReader } from "../ledger/store.ts";
import type { CommandCall } from "./command-action.ts";
import { filterFromFlags, withLedger } from "./ledger-reader.ts";
import { type PolicySession, withPolicy } from "./policy-session.ts";
import { renderTable } from "./table.ts";

const PAGE_ROWS = 1000;
const SHOWN = 50;
const REPLAYED = new Set(["tool", "resource", "prompt"]);

interface Held {
  readonly seq: number;
  readonly time: string;
  readonly client: string;
  readonly name: string;
  readonly was: string;
}

interface Change extends Held {
  readonly wouldBe: string;
  readonly rule: string;
}

/** A call of which nobody can say what would become of it: the ledger does not keep what that depends on. */
interface Unknown extends Held {
  readonly dependsOn: "claims" | "arguments" | "groups";
}

const KEPT_NOT: Readonly<Record<Unknown["dependsOn"], string>> = {
  claims: "claims, which are not recorded",
  arguments: "arguments that were cut or redacted",
  groups: `groups beyond the first ${MAX_GROUP_FLAGS}, which are not recorded`,
};
const NOTE = "Limits are not counted again.";

export async function policyReplayCommand(call: CommandCall): Promise<number> {
  const { terminal, flags, args } = call;
  const filter = filterFromFlags(flags);
  const changes: Change[] = [];
  const unknown: Unknown[] = [];
  let replayed = 0;
  await withPolicy(call, args[0], async (session) =>
    withLedger(flags, async (reader) => {
      for await (const row of rowsOf(reader, filter)) {
        if (!REPLAYED.has(row.kind)) continue;
        replayed += 1;
        const found = compare(session, row);
        if (found === undefined) continue;
        if ("dependsOn" in found) unknown.push(found);
        else changes.push(found);
      }
    }),
  );
  if (flags["json"] === true) {
    terminal.out(`${JSON.stringify({ replayed, changes, unknown, note: NOTE }, null, 2)}\n`);
    return 0;
  }
  const rows = [...changes.map(changeRow), ...unknown.map(unknownRow)].slice(0, SHOWN);
  if (rows.length > 0) {
    const columns = ["SEQ", "TIME", "CLIENT", "NAME", "CHANGE", "RULE"];
    terminal.out(renderTable({ columns, rows, width: terminal.width, color: terminal.outColor }));
  }
  const open =
    unknown.length === 0 ? "" : ` Of ${unknown.length} nobody can say, since they depend on ${reasonsOf(unknown)}.`;
  terminal.err(`${changes.length} of ${replayed} calls would be decided otherwise.${open} ${NOTE}\n`);
  return 0;
}

function changeRow({ seq, time, client, name, was, wouldBe, rule }: Change): string[] {
  return [String(seq), time, client, name, `${was} → ${wouldBe}`, rule];
}

function unknownRow({ seq, time, client, name, was, dependsOn }: Unknown): string[] {
  return [String(seq), time, client, name, `${was} → ?`, `depends on ${dependsOn}`];
}

function reasonsOf(unknown: readonly Unknown[]): string {
  return [...new Set(unknown.map(({ dependsOn }) => KEPT_NOT[dependsOn]))].join("; ");
}

function compare({ policy, server }: PolicySession, row: LedgerRow): Change | Unknown | undefined {
  const { seq, principal, label, kind, name, flags, transport } = row;
  const was = decisionOf(row);
  if (was === undefined) return undefined;
  const held = { seq, time: new Date(row.time).toISOString(), client: principal, name, was };
  const subject = server.subjectNamed(kind === "prompt" ? `prompt:${name}` : name);
  const groups = groupsOf(flags);
  const { args, isMissed } = recordedArguments(row.args);
  const supposed = { client: principal, groups, claims: {}, label: label ?? undefined, subject, args };
  const { decision, rule, lookedAt } = explain(policy, supposed);
  // Over stdio nobody has claims.
  if (lookedAt.includes("claims") && transport !== "stdio") return { ...held, dependsOn: "claims" };
  if (isMissed(lookedAt)) return { ...held, dependsOn: "arguments" };
  if (groups.length >= MAX_GROUP_FLAGS) return { ...held, dependsOn: "groups" };
  const wouldBe = decision === "deny" ? "deny" : "allow";
  return was === wouldBe ? undefined : { ...held, wouldBe, rule };
}

/** What the ledger writes in the place of what it leaves out. */
const DAMAGE =
  /\[redacted\]|… \[\d+ (?:characters|items)\]|\[cut\]|\[too deep\]|\[\d+ bytes\]|\[base64, \d+ characters\]|"…":/;

/** The arguments as they were recorded, and whether a rule looked at one of which something is missing. */
function recordedArguments(text: string): {
  readonly args: object;
  readonly isMissed: (lookedAt: readonly string[]) => boolean;
} {
  const parsed = parseJson(text, undefined);
  const fields: readonly [string, unknown][] = isObject(parsed) ? Object.entries(parsed) : [];
  const isWhole = isObject(parsed) && !("…" in parsed);
  let isMissed = false;
  const args = {};
  for (const [name, value] of fields) {
    const isDamaged = DAMAGE.test(JSON.stringify(value));
    const get = (): unknown => {
      isMissed ||= isDamaged;
      return value;
    };
    Object.defineProperty(args, name, { enumerable: true, get });
  }
  return { args, isMissed: (lookedAt) => isMissed || (!isWhole && lookedAt.includes("args")) };
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function groupsOf(flags: string): readonly string[] {
  const list = parseJson(flags, []);
  if (!Array.isArray(list)) return [];
  return list.flatMap((flag) =>
    typeof flag === "string" && flag.startsWith(GROUP_FLAG) ? [flag.slice(GROUP_FLAG.length)] : [],
  );
}

/** Refusals by a count, by an approval or by a broken store say nothing about the policy's rules. */
function decisionOf({ decision, rule }: LedgerRow): Explanation["decision"] | undefined {
  if (decision !== "deny") return "allow";
  const isRule = /\.(visible|hidden|allow|deny|maxCostPerCall)$/.test(rule) || rule.startsWith("rules.");
  return isRule ? "deny" : undefined;
}

async function* rowsOf(reader: LedgerReader, filter: Parameters<LedgerReader["list"]>[0]): AsyncGenerator<LedgerRow> {
  let after: number | undefined;
  for (;;) {
    const page = { limit: PAGE_ROWS, order: "oldest", ...(after !== undefined && { after }) } as const;
    const rows = await reader.list(filter, page);
    yield* rows;
    after = rows.at(-1)?.seq;
    if (rows.length < PAGE_ROWS || after === undefined) return;
  }
}

function parseJson(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Arguments that were cut are no JSON any more.
    return otherwise;
  }
}
