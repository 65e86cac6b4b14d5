import * as z from "zod";
import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Stands for everybody. */
export const EVERYBODY = "*";

const LOOK_MS = 500;

/** Hears of those that began, on whichever server. */
type Listener = (begun: readonly Pause[]) => void;

/** The switch that stops clients. Its store outlives the server, and all servers of the store follow it. */
export class Pauses {
  readonly #store: PauseStore;
  readonly #logger: Logger;
  readonly #listeners = new Set<Listener>();
  /** What was changed here and is not kept yet; `undefined` for a client that goes on. */
  readonly #unwritten = new Map<string, Pause | undefined>();
  #kept: ReadonlyMap<string, Pause>;
  #pauses: ReadonlyMap<string, Pause>;
  /** The store was as we know it at this time, or later. */
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

  /** @throws Error when a pause is there and cannot be read: who was paused must not run because of that. */
  static async open(store: PauseStore, logger: Logger): Promise<Pauses> {
    const seenAtMs = performance.now();
    return new Pauses({ store, logger }, { seenAtMs, kept: await store.read() });
  }

  list(): readonly Pause[] {
    return [...this.#pauses.values()].toSorted((a, b) => a.since.localeCompare(b.since));
  }

  /** Whether others may have paused somebody and we would not know: then `look` before `check`. */
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

  /** Holds at once, and is kept when it resolves. One that cannot be written holds here all the same. */
  async pause(pause: Pause): Promise<void> {
    await this.#change(pause.client, pause);
  }

  /** Says whether it was paused. */
  async resume(client: string): Promise<boolean> {
    const wasPaused = this.#pauses.has(client);
    if (wasPaused) await this.#change(client, undefined);
    return wasPaused;
  }

  /** Asks the store, once for everybody who wants to know now. @throws when it cannot say. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  /** What others have changed up to now is known afterwards. */
  async catchUp(): Promise<void> {
    // One that is under way may have asked too early.
    await this.#looking?.catch(() => undefined);
    await this.look();
  }

  watch(): void {
    // Told in the log, and to whoever calls.
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
      // What was written here meanwhile may be missing in it.
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
      // Whoever cannot be resumed for all stays paused: the other servers have not heard of it either.
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

  /** Unless somebody has changed it again meanwhile. */
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

/** The calls of a client, or of everybody, are refused until somebody resumes them. */
export interface Pause {
  /** A principal, or `*`. */
  readonly client: string;
  readonly by: string;
  readonly reason: string;
  /** ISO 8601. */
  readonly since: string;
  /** Calls that ran when it began are ended, on every server. */
  readonly cancel?: boolean | undefined;
}

/** Where pauses are kept. Several servers may have one in common, and write without asking each other. */
export interface PauseStore {
  /** After this long without an answer it must be asked before a call; nobody waits for what is always at hand. */
  readonly maxAgeMs: number;
  /** @throws Error when one is there and does not say who is paused. */
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

/** Nothing where the text does not say who is paused. */
export function parsePause(text: string): Pause | undefined {
  try {
    return pauseSchema.safeParse(JSON.parse(text)).data;
  } catch {
    // Whoever asked says what is wrong, and where.
    return undefined;
  }
}
