import type { Logger } from "../telemetry/logger.ts";
import type { ClusterDatabase, SessionChange } from "./cluster-database.ts";

/** A session of this server that is stored. */
export interface StoredSession {
  /** Another server owns it. */
  onTaken(): void;
  /** Nothing is stored of it: all of it is to be written again. */
  writeAgain(): void;
  /** Too many changes waited: from now on it is not stored, and ends with this server. */
  onDropped(): void;
}

export interface SessionWriterOptions {
  readonly database: ClusterDatabase;
  readonly serverId: string;
  readonly logger: Logger;
  /** How long a session is stored after its last change. */
  readonly lifeMs: number;
}

const MAX_BATCH = 200;
const MAX_BATCH_BYTES = 1024 * 1024;
/** More than this does not wait for a database that does not answer. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const RETRY_MS = 500;

/** Writes changes of sessions to the database, in order and in batches. No request waits for it. */
export class SessionWriter {
  readonly #options: SessionWriterOptions;
  readonly #sessions = new Map<string, StoredSession>();
  #waiting: SessionChange[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isFailing = false;

  constructor(options: SessionWriterOptions) {
    this.#options = options;
  }

  add(key: string, session: StoredSession): void {
    this.#sessions.set(key, session);
  }

  remove(key: string): void {
    this.#sessions.delete(key);
  }

  /** Every session of which nothing is stored is written again. */
  checkAll(): void {
    const { lifeMs } = this.#options;
    for (const key of this.#sessions.keys()) this.write({ op: "keep", key, lifeMs });
  }

  /** Resolves when it is stored. @throws OwlError */
  async writeNow(change: SessionChange): Promise<void> {
    await this.#run([change]);
  }

  write(change: SessionChange): void {
    this.#waiting.push(change);
    this.#waitingBytes += sizeOf(change);
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#dropWaiting();
    this.#start();
  }

  /** Waits for the batch that is being written. */
  async close(): Promise<void> {
    clearTimeout(this.#retry);
    await this.#writing;
    clearTimeout(this.#retry);
    this.#sessions.clear();
  }

  #start(): void {
    if (this.#retry !== undefined) return;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#nextBatch();
      try {
        await this.#run(batch);
      } catch (error) {
        // A change that is written twice has the same effect.
        this.#waiting = [...batch, ...this.#waiting];
        this.#failed(error);
        return;
      }
      this.#waitingBytes = Math.max(0, this.#waitingBytes - batch.reduce((sum, change) => sum + sizeOf(change), 0));
      if (this.#isFailing) this.#options.logger.info("sessions are stored again");
      this.#isFailing = false;
    }
  }

  #failed(error: unknown): void {
    if (!this.#isFailing) {
      this.#isFailing = true;
      this.#options.logger.error("sessions cannot be stored: they are written when the database answers", { error });
    }
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#start();
    }, RETRY_MS).unref();
  }

  #nextBatch(): SessionChange[] {
    let count = 0;
    let bytes = 0;
    for (const change of this.#waiting) {
      bytes += sizeOf(change);
      if (count === MAX_BATCH || (count > 0 && bytes > MAX_BATCH_BYTES)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #run(changes: readonly SessionChange[]): Promise<void> {
    const { database, serverId } = this.#options;
    const outcomes = await database.writeSessions(serverId, changes);
    const missing = new Set<string>();
    for (const [index, { key }] of changes.entries()) {
      if (outcomes[index] === "taken") this.#sessions.get(key)?.onTaken();
      else if (outcomes[index] === "missing") missing.add(key);
    }
    for (const key of missing) this.#sessions.get(key)?.writeAgain();
  }

  /** A session of which a part is missing must not be continued elsewhere: its stored part is deleted. */
  #dropWaiting(): void {
    const keys = new Set(this.#waiting.map(({ key }) => key));
    for (const key of keys) this.#sessions.get(key)?.onDropped();
    this.#waiting = [...keys].map((key) => ({ op: "end", key }));
    this.#waitingBytes = 0;
  }
}

function sizeOf(change: SessionChange): number {
  if (change.op === "event") return change.event.length + (change.about?.length ?? 0);
  return change.op === "state" ? change.state.length : 100;
}
