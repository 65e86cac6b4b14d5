import { randomBytes } from "node:crypto";
import type { OwlError } from "../errors/owl-error.ts";
import type { Governor } from "../governance/governor.ts";
import type { Ledger } from "../governance/ledger/ledger.ts";
import type { Logger } from "../telemetry/logger.ts";

/** How an operator acts: over HTTP with a page or an API, or with a command on the same machine. */
export type OperatorTransport = "http" | "local";

/** An action of an operator. */
export interface OperatorAct {
  /** The operator, as the ledger names them. */
  readonly by: string;
  readonly transport: OperatorTransport;
  /** `approval.approve`, `client.pause`, `operator.takeover`. */
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly rule?: string;
  readonly traceId?: string;
  readonly sandbox?: string;
  /** Why the action had no effect, when that is known. */
  readonly failure?: OwlError;
  /** Why the action was not allowed. Repeated refusals are counted, as those of calls are. */
  readonly refusal?: OwlError;
}

/** Where actions are recorded. */
export interface ActRecord {
  readonly ledger: Pick<Ledger, "append">;
  readonly governor: Pick<Governor, "revision">;
}

/** The principal of the server's own actions, which no token can name. */
const SERVER = "owlclaw";
const READ_ONCE_MS = 60_000;
const MAX_KEPT_READS = 1000;
const TRACE_ID_BYTES = 16;

/** Records an action before it is taken: an action that cannot be recorded is not taken. */
export async function recordAct(
  { ledger, governor }: ActRecord,
  { by, transport, name, args, rule = "default", traceId, sandbox, failure, refusal }: OperatorAct,
): Promise<void> {
  const error = refusal ?? failure;
  await ledger.append({
    time: Date.now(),
    principal: by,
    label: undefined,
    transport,
    kind: "admin",
    name,
    calledAs: name,
    args,
    result: error && { error: error.message },
    outcome: refusal !== undefined ? "refused" : failure === undefined ? "ok" : "failed",
    errorKind: error?.kind,
    decision: refusal === undefined ? "allow" : "deny",
    rule,
    policyRevision: governor.revision,
    durationMs: 0,
    costMicros: 0,
    traceId: traceId ?? randomBytes(TRACE_ID_BYTES).toString("hex"),
    sandbox,
    flags: [],
  });
}

/** Records the actions of operators, and what the server does without a call. */
export class OperatorActs {
  readonly #record: ActRecord;
  readonly #logger: Logger;
  readonly #reads = new Map<string, { readonly startMs: number; readonly written: Promise<void> }>();

  constructor(record: ActRecord, logger: Logger) {
    this.#record = record;
    this.#logger = logger;
  }

  /** Rejects when the record cannot be written: then the action is not taken. */
  record(act: OperatorAct): Promise<void> {
    return recordAct(this.#record, act);
  }

  /** The dashboard reads every few seconds: the first read of a minute is recorded, by operator and name. */
  recordRead(act: OperatorAct): Promise<void> {
    const key = JSON.stringify([act.by, act.transport, act.name]);
    const startMs = performance.now();
    const known = this.#reads.get(key);
    if (known !== undefined && startMs - known.startMs < READ_ONCE_MS) return known.written;
    if (this.#reads.size >= MAX_KEPT_READS) this.#reads.clear();
    const written = this.record(act);
    this.#reads.set(key, { startMs, written });
    written.catch(() => {
      if (this.#reads.get(key)?.written === written) this.#reads.delete(key);
    });
    return written;
  }

  /** Records what is refused, or has already happened. A ledger that cannot write reports that itself. */
  note(act: OperatorAct): void {
    this.record(act).catch((error: unknown) =>
      this.#logger.error("an event could not be recorded", { name: act.name, error }),
    );
  }

  noteOwn(name: string, args: OperatorAct["args"]): void {
    this.note({ by: SERVER, transport: "local", name, args });
  }
}
