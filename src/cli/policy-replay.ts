import { explain, type Explanation } from "../governance/explain.ts";
import { GROUP_FLAG } from "../governance/policy/asker-policy.ts";
import type { LedgerRow } from "../ledger/row.ts";
import type { LedgerReader } from "../ledger/store.ts";
import type { CommandCall } from "./command-action.ts";
import { filterFromFlags, withLedger } from "./ledger-reader.ts";
import { type PolicySession, withPolicy } from "./policy-session.ts";
import { renderTable } from "./table.ts";

const PAGE_ROWS = 1000;
const SHOWN = 50;
const REPLAYED = new Set(["tool", "resource", "prompt"]);

interface Change {
  readonly seq: number;
  readonly time: string;
  readonly client: string;
  readonly name: string;
  readonly was: string;
  readonly wouldBe: string;
  readonly rule: string;
}

/** What the ledger does not keep cannot be replayed: claims, which say more of people than a record needs; and counts, which depend on time. */
const NOTE = "Claims are not in the ledger, and limits are not counted again: both are left out here.";

export async function policyReplayCommand(call: CommandCall): Promise<number> {
  const { terminal, flags, args } = call;
  const filter = filterFromFlags(flags);
  let replayed = 0;
  const changes = await withPolicy(call, args[0], async (session) =>
    withLedger(flags, async (reader) => {
      const found: Change[] = [];
      for await (const row of rowsOf(reader, filter)) {
        if (!REPLAYED.has(row.kind)) continue;
        replayed += 1;
        const change = compare(session, row);
        if (change !== undefined) found.push(change);
      }
      return found;
    }),
  );
  if (flags["json"] === true) {
    terminal.out(`${JSON.stringify({ replayed, changes, note: NOTE }, null, 2)}\n`);
    return 0;
  }
  if (changes.length > 0) {
    const rows = changes
      .slice(0, SHOWN)
      .map(({ seq, time, client, name, was, wouldBe, rule }) => [
        String(seq),
        time,
        client,
        name,
        `${was} → ${wouldBe}`,
        rule,
      ]);
    const columns = ["SEQ", "TIME", "CLIENT", "NAME", "CHANGE", "RULE"];
    terminal.out(renderTable({ columns, rows, width: terminal.width, color: terminal.outColor }));
  }
  terminal.err(`${changes.length} of ${replayed} calls would be decided otherwise. ${NOTE}\n`);
  return 0;
}

function compare({ policy, server }: PolicySession, row: LedgerRow): Change | undefined {
  const { seq, time, principal, label, kind, name, args, flags } = row;
  const was = decisionOf(row);
  if (was === undefined) return undefined;
  const subject = server.subjectNamed(kind === "prompt" ? `prompt:${name}` : name);
  const supposed = { client: principal, groups: groupsOf(flags), claims: {}, label: label ?? undefined, subject };
  const { decision, rule } = explain(policy, { ...supposed, args: parseJson(args, {}) });
  const wouldBe = decision === "deny" ? "deny" : "allow";
  if (was === wouldBe) return undefined;
  return { seq, time: new Date(time).toISOString(), client: principal, name, was, wouldBe, rule };
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
