import { explain, type Explanation, type SupposedCall } from "../governance/explain.ts";
import { CONFIRMED_FLAG } from "../governance/governor.ts";
import { RAN_ON_FLAG } from "../governance/ledger/ledger.ts";
import { GROUP_FLAG, MAX_GROUP_FLAGS } from "../governance/policy/asker-policy.ts";
import { UNAPPROVED_MESSAGE } from "../governance/refusal.ts";
import type { LedgerRow } from "../governance/ledger/row.ts";
import type { LedgerReader } from "../governance/ledger/store.ts";
import type { CommandCall } from "./command.ts";
import { filterFromFlags, withLedger } from "./ledger.ts";
import { type PolicySession, withPolicy } from "./policy.ts";
import { renderTable } from "./table.ts";
import { jsonText } from "./text.ts";
import { sentOf, withSent } from "../governance/policy/terms.ts";
import type { LocalServer } from "../server/local-client.ts";

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

/** A call whose outcome cannot be determined, because it depends on data that the ledger does not record. */
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
        if (!REPLAYED.has(row.kind) || flagsOf(row.flags).includes(RAN_ON_FLAG)) continue;
        replayed += 1;
        const found = await compare(session, row);
        if (found === undefined) continue;
        if ("dependsOn" in found) unknown.push(found);
        else changes.push(found);
      }
    }),
  );
  if (flags["json"] === true) {
    terminal.out(jsonText({ replayed, changes, unknown, note: NOTE }));
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

async function compare({ policy, server }: PolicySession, row: LedgerRow): Promise<Change | Unknown | undefined> {
  const { seq, principal, label, name, flags, transport } = row;
  const was = decisionOf(row);
  if (was === undefined) return undefined;
  const held = { seq, time: new Date(row.time).toISOString(), client: principal, name, was };
  const groups = flagsOf(flags).flatMap((flag) => (flag.startsWith(GROUP_FLAG) ? [flag.slice(GROUP_FLAG.length)] : []));
  const { wasUnjudged, isMissed, ...call } = await recordedCall(server, row);
  const supposed = { client: principal, groups, claims: {}, label: label ?? undefined, ...call };
  const { decision, rule, visible, lookedAt } = explain(policy, supposed);
  // Over stdio callers have no claims.
  if (lookedAt.includes("claims") && transport !== "stdio") return { ...held, dependsOn: "claims" };
  if (isMissed(lookedAt)) return { ...held, dependsOn: "arguments" };
  if (groups.length >= MAX_GROUP_FLAGS) return { ...held, dependsOn: "groups" };
  const wouldBe = wasUnjudged && visible ? "allow" : decision;
  return was === wouldBe ? undefined : { ...held, wouldBe, rule };
}

function flagsOf(flags: string): readonly string[] {
  const list = parseJson(flags, []);
  return Array.isArray(list) ? list.filter((flag) => typeof flag === "string") : [];
}

/**
 * What the rules of the policy decided. Undefined for refusals by a limit or by a failed store, which say nothing about
 * the rules, and for suspended calls, which the client sent again.
 */
function decisionOf({ decision, rule, flags, outcome, result }: LedgerRow): Explanation["decision"] | undefined {
  if (outcome === "suspended") return undefined;
  // The policy required approval. Who was asked, and the decision, do not matter here.
  if (flagsOf(flags).includes(CONFIRMED_FLAG) || rule.endsWith(".confirm")) return "confirm";
  if (decision !== "deny") return "allow";
  if (result.includes(UNAPPROVED_MESSAGE)) return "confirm";
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

type Server = Pick<LocalServer, "named">;
type Fields = Readonly<Record<string, unknown>>;

/** A call from the ledger as rules would see it now, as far as the ledger recorded it. */
export interface RecordedCall extends SupposedCall {
  /** The call failed validation of its arguments, or its name was unknown, so no rule has evaluated its arguments. */
  readonly wasUnjudged: boolean;
  /** Whether a rule read an argument that is not recorded in full. */
  readonly isMissed: (lookedAt: readonly string[]) => boolean;
}

/** The marks that the ledger writes in place of omitted data. */
const DAMAGE =
  /\[redacted\]|… \[\d+ (?:characters|items)\]|\[cut\]|\[too deep\]|\[\d+ bytes\]|\[base64, \d+ characters\]|"…":/;

/** Errors of a call before any rule evaluates its arguments. */
const EARLY_ERRORS: ReadonlySet<string | null> = new Set([
  "invalid_arguments",
  "invalid_params",
  "tool_not_found",
  "resource_not_found",
  "prompt_not_found",
]);

export async function recordedCall(server: Server, row: LedgerRow): Promise<RecordedCall> {
  const parsed = parseJson(row.args, undefined);
  const fields: Fields = isObject(parsed) ? parsed : {};
  const damaged = Object.keys(fields).filter((name) => DAMAGE.test(JSON.stringify(fields[name])));
  const found = await findCall(server, row, { fields, damaged });
  // For operations that are neither tools nor reads, rules see the arguments as recorded.
  const call: SupposedCall = found ?? { subject: server.named.subject(qualified(row, row.name)), args: fields };
  const isUnknown = !isObject(parsed) || "…" in fields || (call.mistake !== undefined && damaged.length > 0);
  const { args, isMissed } = watchedCall(call.args, damaged);
  return {
    ...call,
    args,
    wasUnjudged: EARLY_ERRORS.has(row.error_kind) && !isUnknown && (found === undefined || call.mistake !== undefined),
    isMissed: (lookedAt) => isMissed() || (isUnknown && lookedAt.includes("args")),
  };
}

interface Recorded {
  readonly fields: Fields;
  readonly damaged: readonly string[];
}

/**
 * Finds the called tool or resource. When damaged arguments fail validation, the others are validated without them, to
 * fill in defaults of arguments that were not sent.
 */
async function findCall(
  { named }: Server,
  row: LedgerRow,
  { fields, damaged }: Recorded,
): Promise<SupposedCall | undefined> {
  const name = calledName(row, fields);
  const call = await named.find(name, fields);
  if (call?.mistake === undefined || damaged.length === 0) return call;
  const entries = Object.entries(fields);
  const rest = await named.find(name, Object.fromEntries(entries.filter(([key]) => !damaged.includes(key))));
  if (rest === undefined || rest.mistake !== undefined || !isObject(rest.args)) return call;
  return { ...rest, args: { ...rest.args, ...Object.fromEntries(entries.filter(([key]) => damaged.includes(key))) } };
}

/**
 * The ledger cuts names to fewer characters than arguments, so the URI in the arguments may be longer than the name.
 */
function calledName(row: LedgerRow, { uri }: Fields): string {
  const { kind, called_as: calledAs } = row;
  return kind === "resource" && typeof uri === "string" && uri.startsWith(calledAs) ? uri : qualified(row, calledAs);
}

function qualified({ kind }: LedgerRow, name: string): string {
  return kind === "prompt" ? `prompt:${name}` : name;
}

/** The arguments as rules see them, with the arguments as sent beside them. */
function watchedCall(judged: unknown, damaged: readonly string[]): Watched {
  const seen = watched(judged, damaged);
  const sent = isObject(judged) ? watched(sentOf(judged), damaged) : seen;
  return { args: withSent(seen.args, sent.args), isMissed: () => seen.isMissed() || sent.isMissed() };
}

interface Watched {
  readonly args: Fields;
  readonly isMissed: () => boolean;
}

/** The arguments, with a record of whether a rule read one that is not recorded in full. */
function watched(judged: unknown, damaged: readonly string[]): Watched {
  let isMissed = false;
  const args = {};
  for (const [name, value] of Object.entries(isObject(judged) ? judged : {})) {
    // Arguments from a URI template have other names than the recorded argument, so their values are checked too.
    const isDamaged = damaged.includes(name) || (typeof value === "string" && DAMAGE.test(value));
    const get = (): unknown => {
      isMissed ||= isDamaged;
      return value;
    };
    Object.defineProperty(args, name, { enumerable: true, get });
  }
  return { args, isMissed: () => isMissed };
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Arguments that the ledger has cut are not valid JSON any more. */
export function parseJson(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}
