import type { RedisConnection } from "../platform/redis-connection.ts";
import { WRITE_SCRIPT } from "./session-scripts.ts";

interface Target {
  /** Its key in the store. */
  readonly key: string;
}

/** One thing to write of a session. */
export type JournalEntry = Target &
  (
    | { readonly op: "state"; readonly state: string; readonly lifeMs: number }
    | {
        readonly op: "event";
        readonly stream: string;
        readonly sequence: number;
        readonly event: string;
        /** With the first event of a stream. */
        readonly about?: string;
        /** How many of the stream's events are kept. */
        readonly keep: number;
        readonly lifeMs: number;
      }
    | { readonly op: "close"; readonly stream: string; readonly about: string; readonly lifeMs: number }
    | { readonly op: "forget"; readonly stream: string }
    | { readonly op: "keep"; readonly lifeMs: number }
    | { readonly op: "end" }
  );

/** A session as the journal sees it. */
export interface JournalSession {
  /** Another server has it. */
  onTaken(): void;
  /** The store knows nothing of it: everything is to be written again. */
  writeAgain(): void;
  /** Too much waited for the store: from now on it is not kept there, and ends with its server. */
  onDropped(): void;
}

export interface JournalOptions {
  readonly connection: RedisConnection;
  readonly serverId: string;
  /** How long the store keeps a session that nobody speaks of any more. */
  readonly lifeMs: number;
}

const MAX_BATCH = 200;
const MAX_BATCH_BYTES = 1024 * 1024;
/** While the store is away, no more waits for it than this. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const RETRY_MS = 500;

/** Writes what happens in sessions to the store, in order and behind the scenes: no client waits for it. */
export class SessionJournal {
  readonly #options: JournalOptions;
  readonly #sessions = new Map<string, JournalSession>();
  #waiting: JournalEntry[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: JournalOptions) {
    this.#options = options;
    options.connection.onReturn(() => this.#checkAll());
  }

  add(key: string, session: JournalSession): void {
    this.#sessions.set(key, session);
  }

  remove(key: string): void {
    this.#sessions.delete(key);
  }

  /** Resolves when it is in the store. @throws OwlError */
  async writeNow(entry: JournalEntry): Promise<void> {
    await this.#run([entry]);
  }

  write(entry: JournalEntry): void {
    this.#waiting.push(entry);
    this.#waitingBytes += sizeOf(entry);
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#dropWaiting();
    this.#start();
  }

  /** Waits for what is under way, if the store answers. */
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
      } catch {
        // The connection has logged it. Writing an entry twice does no harm.
        this.#waiting = [...batch, ...this.#waiting];
        this.#retryLater();
        return;
      }
      this.#waitingBytes = Math.max(0, this.#waitingBytes - batch.reduce((sum, entry) => sum + sizeOf(entry), 0));
    }
  }

  #retryLater(): void {
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#start();
    }, RETRY_MS).unref();
  }

  #nextBatch(): JournalEntry[] {
    let count = 0;
    let bytes = 0;
    for (const entry of this.#waiting) {
      bytes += sizeOf(entry);
      if (count === MAX_BATCH || (count > 0 && bytes > MAX_BATCH_BYTES)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #run(ops: readonly JournalEntry[]): Promise<void> {
    const { connection, serverId } = this.#options;
    const answers = await connection.run(WRITE_SCRIPT, JSON.stringify({ me: serverId, ops }));
    const missing = new Set<string>();
    for (const [index, { key }] of ops.entries()) {
      const answer: unknown = Array.isArray(answers) ? answers[index] : undefined;
      if (answer === "taken") this.#sessions.get(key)?.onTaken();
      else if (answer === "missing") missing.add(key);
    }
    for (const key of missing) this.#sessions.get(key)?.writeAgain();
  }

  /** Part of a session is worse than nothing of it: somebody would go on with what never was. */
  #dropWaiting(): void {
    const keys = new Set(this.#waiting.map(({ key }) => key));
    for (const key of keys) this.#sessions.get(key)?.onDropped();
    this.#waiting = [...keys].map((key) => ({ op: "end", key }));
    this.#waitingBytes = 0;
  }

  /** The store may have lost its memory. */
  #checkAll(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const { lifeMs } = this.#options;
    for (const key of this.#sessions.keys()) this.write({ op: "keep", key, lifeMs });
    this.#start();
  }
}

function sizeOf(entry: JournalEntry): number {
  if (entry.op === "event") return entry.event.length + (entry.about?.length ?? 0);
  return entry.op === "state" ? entry.state.length : 100;
}
