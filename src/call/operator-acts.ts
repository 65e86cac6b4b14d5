import { randomBytes } from "node:crypto";
import type { OwlError } from "../errors/owl-error.ts";
import type { Governor } from "../governance/governor.ts";
import type { Ledger } from "../governance/ledger/ledger.ts";
import type { Logger } from "../telemetry/logger.ts";

/** The way that an operator came: a page or an API, or a command on the same machine. */
export type OperatorTransport = "http" | "local";

/** Something that an operator does. */
export interface OperatorAct {
  /** Who, as the ledger names them. */
  readonly by: string;
  readonly transport: OperatorTransport;
  /** `approval.approve`, `client.pause`, `operator.takeover`. */
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly rule?: string;
  readonly traceId?: string;
  readonly sandbox?: string;
  /** Why nothing came of it, where that is known. */
  readonly failure?: OwlError;
  /** Why it was not allowed. Those that repeat are counted, as refused calls are. */
  readonly refusal?: OwlError;
}

/** Where it is written. */
export interface ActRecord {
  readonly ledger: Pick<Ledger, "append">;
  readonly governor: Pick<Governor, "revision">;
}

/** What the server does by itself has this principal, which no token can name. */
const SERVER = "owlclaw";
const READ_ONCE_MS = 60_000;
const MAX_KEPT_READS = 1000;
const TRACE_ID_BYTES = 16;

/** Written before it is done: what cannot be recorded is not done. */
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

/** The record of what operators do, and of what the server does without a call. */
export class OperatorActs {
  readonly #record: ActRecord;
  readonly #logger: Logger;
  readonly #reads = new Map<string, { readonly startMs: number; readonly written: Promise<void> }>();

  constructor(record: ActRecord, logger: Logger) {
    this.#record = record;
    this.#logger = logger;
  }

  /** Rejects when it cannot be written: then nothing is done. */
  record(act: OperatorAct): Promise<void> {
    return recordAct(this.#record, act);
  }

  /** A page reads every few seconds: the first read of a minute is written, by operator and name. */
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

  /** Of what is refused, or has happened, anyway. A ledger that cannot write says so by itself. */
  note(act: OperatorAct): void {
    this.record(act).catch((error: unknown) =>
      this.#logger.error("an event could not be recorded", { name: act.name, error }),
    );
  }

  noteOwn(name: string, args: OperatorAct["args"]): void {
    this.note({ by: SERVER, transport: "local", name, args });
  }
}
