import * as z from "zod";
import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";

/** The client name that pauses all clients. */
export const EVERYBODY = "*";

const LOOK_MS = 500;

/** Receives the pauses that began, on any server. */
type Listener = (begun: readonly Pause[]) => void;

/** Pauses clients. The store persists the pauses across restarts, and all servers that share it apply them. */
export class Pauses {
  readonly #store: PauseStore;
  readonly #logger: Logger;
  readonly #listeners = new Set<Listener>();
  /** Changes of this server that are not stored yet; `undefined` for a client that is resumed. */
  readonly #unwritten = new Map<string, Pause | undefined>();
  #kept: ReadonlyMap<string, Pause>;
  #pauses: ReadonlyMap<string, Pause>;
  /** When the last successful read of the store began. */
  #seenAtMs: number;
  #writes = 0;
  #looking: Promise<void> | undefined;
  #isInTrouble = false;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(
    { store, logger }: { readonly store: PauseStore; readonly logger: Logger },
    { seenAtMs, kept }: { readonly seenAtMs: number; readonly kept: ReadonlyMap<string, Pause> },
  ) {
    this.#store = store;
    this.#logger = logger;
    this.#seenAtMs = seenAtMs;
    this.#kept = kept;
    this.#pauses = kept;
  }

  /** @throws Error when a stored pause cannot be read: the client that it pauses must not run because of that. */
  static async open(store: PauseStore, logger: Logger): Promise<Pauses> {
    const seenAtMs = performance.now();
    return new Pauses({ store, logger }, { seenAtMs, kept: await store.read() });
  }

  list(): readonly Pause[] {
    return [...this.#pauses.values()].toSorted((a, b) => a.since.localeCompare(b.since));
  }

  /** Whether another server may have paused a client without this server knowing: then call `look` before `check`. */
  get isStale(): boolean {
    return performance.now() - this.#seenAtMs > this.#store.maxAgeMs;
  }

  /** @throws OwlError with the operator's reason. */
  check(client: string): void {
    if (this.#pauses.size === 0) return;
    const pause = this.#pauses.get(EVERYBODY) ?? this.#pauses.get(client);
    if (pause === undefined) return;
    const { since, reason } = pause;
    const whose = pause.client === EVERYBODY ? "all calls" : "your calls";
    throw new OwlError("paused", `an operator has paused ${whose}${reason === "" ? "" : `: ${reason}`}`, {
      facts: { rule: "paused", since, reason },
    });
  }

  onChange(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Takes effect at once, and is stored when the promise resolves. A pause that cannot be stored still holds on this
   * server.
   */
  async pause(pause: Pause): Promise<void> {
    await this.#change(pause.client, pause);
  }

  /** Returns whether the client was paused. */
  async resume(client: string): Promise<boolean> {
    const wasPaused = this.#pauses.has(client);
    if (wasPaused) await this.#change(client, undefined);
    return wasPaused;
  }

  /** Reads the store; concurrent callers share one read. @throws when the read fails. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  /** Resolves when all changes that other servers made before the call are known. */
  async catchUp(): Promise<void> {
    // A read in progress may have started too early.
    await this.#looking?.catch(() => undefined);
    await this.look();
  }

  watch(): void {
    // `look` logs the error, and rejects for callers that wait for it.
    this.#timer = setInterval(() => void this.look().catch(() => undefined), LOOK_MS);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#listeners.clear();
    await this.#looking?.catch(() => undefined);
    await this.#store.close();
  }

  async #look(): Promise<void> {
    const [seenAtMs, writes] = [performance.now(), this.#writes];
    try {
      const kept = await this.#store.read();
      // The result may lack what this server wrote during the read.
      if (writes !== this.#writes) return await this.#look();
      this.#kept = kept;
      this.#seenAtMs = seenAtMs;
      this.#isInTrouble = false;
    } catch (error) {
      if (!this.#isInTrouble)
        this.#logger.error("the paused clients cannot be read, those that were stay so", { error });
      this.#isInTrouble = true;
      throw error;
    }
    this.#settle();
  }

  async #change(client: string, wanted: Pause | undefined): Promise<void> {
    const before = this.#unwritten.get(client);
    this.#unwritten.set(client, wanted);
    this.#settle();
    const written = this.#turn.then(() => this.#write(client, wanted, before));
    this.#turn = written.catch(() => undefined);
    await written;
  }

  async #write(client: string, wanted: Pause | undefined, before: Pause | undefined): Promise<void> {
    try {
      await (wanted === undefined ? this.#store.remove(client) : this.#store.write(wanted));
    } catch (error) {
      // When the resume cannot be stored, the client stays paused here too, as it does on the other servers.
      if (wanted === undefined) this.#forget(client, wanted, before);
      throw error;
    }
    this.#writes += 1;
    const kept = new Map(this.#kept);
    if (wanted === undefined) kept.delete(client);
    else kept.set(client, wanted);
    this.#kept = kept;
    this.#forget(client, wanted);
  }

  /** Drops the pending change, unless a later change has replaced it. */
  #forget(client: string, wanted: Pause | undefined, before?: Pause): void {
    if (this.#unwritten.get(client) === wanted) this.#unwritten.delete(client);
    if (before !== undefined) this.#unwritten.set(client, before);
    this.#settle();
  }

  #settle(): void {
    const pauses = new Map(this.#kept);
    for (const [client, wanted] of this.#unwritten) {
      if (wanted === undefined) pauses.delete(client);
      else pauses.set(client, wanted);
    }
    const known = this.#pauses;
    const begun = [...pauses.values()].filter((pause) => !isSame(known.get(pause.client), pause));
    if (begun.length === 0 && known.size === pauses.size) return;
    this.#pauses = pauses;
    for (const listener of this.#listeners) listener(begun);
  }
}

function isSame(before: Pause | undefined, after: Pause): boolean {
  return before?.by === after.by && before.reason === after.reason && before.since === after.since;
}

/** Calls of a client, or of all clients, are refused until an operator resumes them. */
export interface Pause {
  /** A principal, or `*`. */
  readonly client: string;
  readonly by: string;
  readonly reason: string;
  /** ISO 8601. */
  readonly since: string;
  /** Whether calls in flight are cancelled on every server when the pause begins. */
  readonly cancel?: boolean | undefined;
}

/** Stores pauses. Several servers may share one store and write to it without coordination. */
export interface PauseStore {
  /** A read older than this must be repeated before a call. `Infinity` for a store that needs no repeated read. */
  readonly maxAgeMs: number;
  /** @throws Error when a stored pause does not name its client. */
  read(): Promise<ReadonlyMap<string, Pause>>;
  write(pause: Pause): Promise<void>;
  remove(client: string): Promise<void>;
  close(): Promise<void>;
}

const pauseSchema = z.strictObject({
  client: z.string(),
  by: z.string(),
  reason: z.string(),
  since: z.string(),
  cancel: z.boolean().optional(),
});

/** `undefined` when the text is not a valid pause. */
export function parsePause(text: string): Pause | undefined {
  try {
    return pauseSchema.safeParse(JSON.parse(text)).data;
  } catch {
    // The caller reports what is wrong, and where.
    return undefined;
  }
}
