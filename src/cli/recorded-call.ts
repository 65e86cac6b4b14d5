import type { SupposedCall } from "../governance/explain.ts";
import { sentOf, withSent } from "../governance/policy/sent-arguments.ts";
import type { LedgerRow } from "../governance/ledger/row.ts";
import type { LocalServer } from "../server/local-client.ts";
import { parseJson } from "./parse-json.ts";

type Server = Pick<LocalServer, "named">;
type Fields = Readonly<Record<string, unknown>>;

/** A call of the ledger as rules would see it now, as far as the ledger kept it. */
export interface RecordedCall extends SupposedCall {
  /** It failed at its arguments, or nobody had its name: no rule has looked at its arguments. */
  readonly wasUnjudged: boolean;
  /** Whether a rule looked at an argument of which something is missing. */
  readonly isMissed: (lookedAt: readonly string[]) => boolean;
}

/** What the ledger writes in the place of what it leaves out. */
const DAMAGE =
  /\[redacted\]|… \[\d+ (?:characters|items)\]|\[cut\]|\[too deep\]|\[\d+ bytes\]|\[base64, \d+ characters\]|"…":/;

/** What a call fails with before it comes to rules that look at its arguments. */
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
  // Doors beside tools and reads give rules just what they record.
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

/** What is damaged may not be valid any more. The rest may be without it, with the defaults of what was not sent. */
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

/** A name is cut sooner than arguments are. */
function calledName(row: LedgerRow, { uri }: Fields): string {
  const { kind, called_as: calledAs } = row;
  return kind === "resource" && typeof uri === "string" && uri.startsWith(calledAs) ? uri : qualified(row, calledAs);
}

function qualified({ kind }: LedgerRow, name: string): string {
  return kind === "prompt" ? `prompt:${name}` : name;
}

/** The arguments as rules see them and, beside them, as they were sent. */
function watchedCall(judged: unknown, damaged: readonly string[]): Watched {
  const seen = watched(judged, damaged);
  const sent = isObject(judged) ? watched(sentOf(judged), damaged) : seen;
  return { args: withSent(seen.args, sent.args), isMissed: () => seen.isMissed() || sent.isMissed() };
}

interface Watched {
  readonly args: Fields;
  readonly isMissed: () => boolean;
}

/** The arguments, which remember whether somebody looked at one that is not whole. */
function watched(judged: unknown, damaged: readonly string[]): Watched {
  let isMissed = false;
  const args = {};
  for (const [name, value] of Object.entries(isObject(judged) ? judged : {})) {
    // Those of a URI are read from it, and have other names than what was recorded.
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
