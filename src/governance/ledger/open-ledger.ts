import type { Config } from "../../config/schema.ts";
import type { OwlError } from "../../errors/owl-error.ts";
import { type Alerts, createAlerts } from "../../telemetry/alerts.ts";
import type { CallsInFlight } from "../../telemetry/calls-in-flight.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { createRedactor, type Redactor } from "../../telemetry/redact.ts";
import { compareWithAnchor, Anchor } from "./compare-with-anchor.ts";
import { type Checkpoint, formatHead, Retention } from "./checkpoint.ts";
import { type Beginning, type CallEnd, type Ledger, type LedgerEntry, RAN_ON_FLAG, draftFromEntry } from "./ledger.ts";
import type { LedgerKeys } from "./keys.ts";
import { OpenLoss } from "./loss.ts";
import { keyFolderOf } from "./open-store.ts";
import { RefusalCounter } from "./refusal-counter.ts";
import { COLUMNS } from "./row.ts";
import { type Recorded, SettlementQueue } from "./settlement-queue.ts";
import type { Appended, LedgerReader, Settlement, SettlingStore } from "./store.ts";

export interface OpenLedgerOptions {
  readonly config: Pick<Config, "store" | "ledger"> & { readonly alerts: Pick<Config["alerts"], "webhook"> };
  readonly dataFolder: string;
  readonly logger: Logger;
  /** Default: those of the configuration. */
  readonly alerts?: Alerts;
  /** The calls in flight, whose rows are about to be written. */
  readonly inFlight?: CallsInFlight;
  /** Closed with the ledger. */
  readonly opened: { readonly store: SettlingStore; readonly keys: LedgerKeys };
}

/** Refusals that repeat within this time are counted in one row. */
const REFUSAL_WINDOW_MS = 60_000;
const REFUSAL_FLUSH_MS = 5000;
const RETRY_MS = 3000;
/** How often the server checks for processes that were killed. */
const RECOVER_MS = 5000;

/** Opens the ledger, and creates it when there is none. Rejects when nothing could be recorded. */
export async function openLedger(options: OpenLedgerOptions): Promise<Ledger> {
  const { config, logger, opened } = options;
  const { store, keys } = opened;
  const alerts = options.alerts ?? createAlerts({ webhook: config.alerts.webhook, logger });
  const anchor = new Anchor(keyFolderOf(options), keys);
  const openLoss = new OpenLoss(keyFolderOf(options));
  const redactor = createRedactor(config.ledger.redact);
  const ledger = new StoredLedger({
    store,
    alerts,
    anchor,
    openLoss,
    logger,
    redactor,
    inFlight: options.inFlight,
  });
  await ledger.start(config.ledger);
  return ledger;
}

/** A draft has no `seq`. */
const ARGS_AT = COLUMNS.indexOf("args") - 1;

interface Parts {
  readonly store: SettlingStore;
  readonly alerts: Alerts;
  readonly anchor: Anchor;
  readonly openLoss: OpenLoss;
  readonly logger: Logger;
  readonly redactor: Redactor;
  readonly inFlight: CallsInFlight | undefined;
}

class StoredLedger implements Ledger {
  readonly reader: LedgerReader;
  readonly #parts: Parts;
  readonly #queue: SettlementQueue;
  readonly #refusals: RefusalCounter;
  #retention: Retention | undefined;
  #flushTimer: NodeJS.Timeout | undefined;
  #sealTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #recoverTimer: NodeJS.Timeout | undefined;
  /** A write outside the queue that is in progress. */
  #aside: Promise<void> | undefined;
  #recovering: Promise<number> | undefined;
  #isHealthy = true;
  #closing: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.reader = readerOf(parts);
    this.#queue = new SettlementQueue({
      write: (batch) => this.#aside?.then(() => parts.store.settle(batch)) ?? parts.store.settle(batch),
      onWritten: (appended) => this.#onWritten(appended),
      onFailed: (error) => this.#onFailed(error),
      gathered: () => parts.inFlight?.settled() ?? Promise.resolve(),
    });
    this.#refusals = new RefusalCounter({
      windowMs: REFUSAL_WINDOW_MS,
      now: () => performance.now(),
      write: (entry) => this.#queue.settle({ draft: draftFromEntry(entry, parts.redactor) }),
      writeCount: ({ entry, count }) =>
        this.#queue.settle({ draft: draftFromEntry(entry, parts.redactor, { counted: { kind: "refusals", count } }) }),
    });
  }

  get isHealthy(): boolean {
    return this.#isHealthy;
  }

  get hasOpenLoss(): boolean {
    return this.#parts.openLoss.read() !== undefined;
  }

  async start({ retentionDays, checkpointMinutes }: Config["ledger"]): Promise<void> {
    const { store, openLoss, logger } = this.#parts;
    const head = await compareWithAnchor(this.#parts);
    await this.recover();
    this.#recoverTimer = setInterval(() => void this.recover(), RECOVER_MS).unref();
    this.#flushTimer = setInterval(() => void this.#flushRefusals("over"), REFUSAL_FLUSH_MS).unref();
    if (checkpointMinutes > 0)
      this.#sealTimer = setInterval(
        () => void this.#writeAside(() => this.#seal()),
        checkpointMinutes * 60_000,
      ).unref();
    if (retentionDays > 0)
      this.#retention = new Retention({ store, retentionDays, keepFromMs: () => openLoss.read()?.time, logger });
    logger.debug("ledger is open", { head: formatHead(head) });
  }

  beginning(entry: LedgerEntry): Beginning {
    const draft = draftFromEntry(entry, this.#parts.redactor);
    return { draft, argsText: String(draft[ARGS_AT]), secrets: entry.secrets };
  }

  append(entry: LedgerEntry, end?: CallEnd): Promise<Recorded> {
    if (end !== undefined) return this.#end(entry, end);
    if (entry.outcome === "refused" && entry.decision === "deny") return this.#refusals.add(entry);
    return this.#queue.settle({ draft: draftFromEntry(entry, this.#parts.redactor) });
  }

  async #end(entry: LedgerEntry, { call, costMicros, beginning, goesOnAs }: CallEnd): Promise<Recorded> {
    const { redactor } = this.#parts;
    // The arguments are serialized once, unless the result has revealed a secret that they may contain.
    const isSame = entry.secrets?.join() === beginning?.secrets?.join();
    const recorded = await this.#queue.settle({
      call,
      costMicros,
      draft: draftFromEntry(entry, redactor, { argsText: isSame ? beginning?.argsText : undefined }),
      goesOnAs: goesOnAs === undefined ? undefined : draftFromEntry(goesOnAs, redactor),
    });
    if (recorded.seq !== 0) return recorded;
    // Another server has treated this one as dead: the call has a row with the outcome `unknown`, and has cost what was
    // reserved.
    const late = { ...entry, costMicros: 0, count: 0, flags: [...entry.flags, RAN_ON_FLAG] };
    return this.#queue.settle({ draft: draftFromEntry(late, redactor) });
  }

  settle(settlement: Settlement): Promise<Recorded> {
    return this.#queue.settle(settlement);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#shutDown());
  }

  async #shutDown(): Promise<void> {
    const { store, alerts } = this.#parts;
    clearInterval(this.#recoverTimer);
    clearInterval(this.#flushTimer);
    clearInterval(this.#sealTimer);
    clearTimeout(this.#retryTimer);
    await this.#retention?.close();
    await this.#flushRefusals("all");
    await this.#queue.drained();
    await this.#queue.payOff();
    await this.#aside;
    await this.#recovering;
    await this.#seal();
    await store.close();
    await alerts.close();
  }

  /** A store takes one write at a time: a write must not sign what an earlier one failed to store. */
  async #writeAside(write: () => Promise<void>): Promise<void> {
    await this.#queue.drained();
    await (this.#aside ??= write().finally(() => (this.#aside = undefined)));
  }

  /**
   * Clients may stop sending calls while nothing can be recorded, so the server itself retries until a write succeeds.
   */
  #retryLater(): void {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => void this.#retry(), RETRY_MS).unref();
  }

  async #retry(): Promise<void> {
    await this.#writeAside(() => this.#touch());
    if (!this.#isHealthy && this.#closing === undefined) this.#retryLater();
  }

  async #touch(): Promise<void> {
    if (this.#isHealthy) return;
    try {
      this.#onWritten(await this.#parts.store.append([]));
      await this.#queue.payOff();
    } catch {
      // Already reported; the write is tried again.
    }
  }

  recover(): Promise<number> {
    return (this.#recovering ??= this.#recover().finally(() => (this.#recovering = undefined)));
  }

  async #recover(): Promise<number> {
    const { store, logger } = this.#parts;
    try {
      const calls = await store.recover();
      if (calls > 0) logger.warning("calls of a server that has ended are recorded as unknown", { calls });
      return calls;
    } catch (error) {
      logger.error("calls of servers that were killed cannot be looked for; it is tried again", { error });
      return 0;
    }
  }

  /** Signs the head, unless it is a signature itself: a server without calls writes nothing. */
  async #seal(): Promise<void> {
    const { store, logger } = this.#parts;
    try {
      this.#onWritten(await store.seal());
    } catch (error) {
      logger.error("the ledger's head could not be signed", { error });
    }
  }

  async #flushRefusals(which: "over" | "all"): Promise<void> {
    try {
      await this.#refusals.flush(which);
    } catch (error) {
      this.#parts.logger.error("counted refusals could not be written", { error });
    }
  }

  #onWritten({ checkpoints }: Appended): void {
    if (!this.#isHealthy) {
      this.#isHealthy = true;
      clearTimeout(this.#retryTimer);
      this.#parts.logger.info("the ledger can be written again");
      this.#parts.alerts.send({
        event: "ledger_recovered",
        severity: "info",
        message: "The ledger can be written again.",
        facts: {},
      });
    }
    for (const checkpoint of checkpoints) this.#publish(checkpoint);
  }

  #onFailed(error: OwlError): void {
    const { logger, alerts } = this.#parts;
    // Reported once, not for every call that is refused because of it.
    if (!this.#isHealthy) return;
    this.#isHealthy = false;
    if (this.#closing === undefined) this.#retryLater();
    logger.error("the ledger cannot be written: calls are refused", { reason: error.message, hint: error.hint });
    alerts.send({ event: "ledger_failed", severity: "error", message: error.message, facts: { hint: error.hint } });
  }

  #publish(checkpoint: Checkpoint): void {
    const { anchor, logger, alerts } = this.#parts;
    const head = formatHead(checkpoint);
    logger.info("ledger head", { head, key: checkpoint.key, signature: checkpoint.signature });
    alerts.send({
      event: "ledger_head",
      severity: "info",
      message: `The ledger's head is ${head}.`,
      facts: { head, ...checkpoint },
    });
    try {
      anchor.advance(checkpoint);
    } catch (error) {
      logger.warning("the ledger's head could not be kept beside its keys", { error });
    }
  }
}

/** Verification also compares the ledger with the newest head in the key folder. Only the ledger closes the store. */
function readerOf({ store, anchor }: Parts): LedgerReader {
  return {
    head: () => store.head(),
    list: (filter, page) => store.list(filter, page),
    get: (seq) => store.get(seq),
    stats: (filter, dayShifts) => store.stats(filter, dayShifts),
    count: (filter) => store.count(filter),
    timeline: (filter, span) => store.timeline(filter, span),
    verify: (options) => {
      const kept = anchor.read();
      return store.verify(kept === undefined ? options : { anchor: kept, ...options });
    },
    close: async () => undefined,
  };
}
