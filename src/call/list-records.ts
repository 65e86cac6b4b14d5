import type { OwlError } from "../errors/owl-error.ts";
import type { LedgerEntry } from "../governance/ledger/ledger.ts";
import type { GovernanceParts } from "./governed-work.ts";
import type { Call } from "./call.ts";
import { sandboxFacts, verdictOfRefusal } from "./ledger-facts.ts";

const ONCE_MS = 60_000;
const MAX_KEPT = 10_000;

type Asked = Pick<Call, "caller" | "traceId">;

/** What was read without a call. Of equal reads in one minute, the first is recorded. */
export type Look = Pick<LedgerEntry, "kind" | "name" | "args" | "result"> &
  Partial<Pick<LedgerEntry, "sandbox" | "secrets">>;

/**
 * Records that a caller requested a list. What a list shows depends on the caller and on the policy, not on how often
 * it is requested: equal requests are recorded once a minute, so that they cannot fill the ledger. The client label is
 * not part of the key: a client could invent any number of labels, with a row for each.
 */
export class ListRecords {
  readonly #parts: GovernanceParts;
  readonly #last = new Map<string, { readonly startMs: number; readonly written: Promise<void> }>();

  constructor(parts: GovernanceParts) {
    this.#parts = parts;
  }

  async record(asked: Asked, about: Look): Promise<void> {
    const { governor } = this.#parts;
    const { principal, transport } = asked.caller;
    const key = JSON.stringify([principal.id, transport, about.name, governor.revision]);
    const startMs = performance.now();
    const known = this.#last.get(key);
    // The row may not be written yet: the requests that it counts for wait for it, too.
    if (known !== undefined && startMs - known.startMs < ONCE_MS) return known.written;
    if (this.#last.size >= MAX_KEPT) this.#last.clear();
    const written = append(this.#parts, asked, about);
    this.#last.set(key, { startMs, written });
    written.catch(() => {
      if (this.#last.get(key)?.written === written) this.#last.delete(key);
    });
    return written;
  }
}

/** Records that a caller may not watch a resource. Repeated refusals are counted, as those of calls are. */
export async function recordUnwatchable(
  parts: GovernanceParts,
  asked: Asked,
  { uri, error }: { readonly uri: string; readonly error: OwlError },
): Promise<void> {
  const about = {
    kind: "resource",
    name: uri,
    args: { uri },
    result: { error: error.message },
    ...sandboxFacts({ uri }, undefined),
  } as const;
  const { rule } = verdictOfRefusal(error);
  const refused = { outcome: "refused", errorKind: error.kind, decision: "deny", rule: rule ?? "default" } as const;
  await append(parts, asked, { ...about, ...refused, calledAs: "resources/subscribe" });
}

/** Records that a client may not continue with its task. Repeated refusals are counted, as those of calls are. */
export async function recordRefusedTask(
  parts: GovernanceParts,
  asked: Asked,
  {
    name,
    task_id,
    tool,
    error,
  }: { readonly name: string; readonly task_id: string; readonly tool?: string; readonly error: OwlError },
): Promise<void> {
  const { rule } = verdictOfRefusal(error);
  const refused = { outcome: "refused", errorKind: error.kind, decision: "deny", rule: rule ?? "default" } as const;
  const about = { kind: "task", name, args: { task_id, tool }, result: { error: error.message } } as const;
  await append(parts, asked, { ...about, ...refused });
}

/** What is recorded of a message to a task. For the message that begins a task, this includes its arguments. */
export interface TaskWord {
  readonly task_id: string;
  readonly arguments?: unknown;
  readonly [fact: string]: unknown;
}

/**
 * Records that a task began, or a message of a client that had an effect on it: there are no more of these than calls.
 */
export async function recordTaskWord(
  parts: GovernanceParts,
  asked: Asked,
  { name, args }: { readonly name: string; readonly args: TaskWord },
): Promise<void> {
  await append(parts, asked, { kind: "task", name, args, result: {}, ...sandboxFacts(args.arguments, undefined) });
}

async function append(
  { governor, ledger }: GovernanceParts,
  { caller, traceId }: Asked,
  about: Look & Partial<LedgerEntry>,
): Promise<void> {
  try {
    await ledger.append({
      time: Date.now(),
      principal: caller.principal.id,
      label: caller.label,
      transport: caller.transport,
      calledAs: about.name,
      outcome: "ok",
      errorKind: undefined,
      decision: "allow",
      rule: "default",
      policyRevision: governor.revision,
      durationMs: 0,
      costMicros: 0,
      traceId,
      sandbox: undefined,
      flags: [],
      ...about,
    });
  } catch (error) {
    if (!governor.failOpen) throw error;
  }
}
