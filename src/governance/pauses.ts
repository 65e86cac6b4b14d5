import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Pause, PauseFiles } from "./pause-files.ts";

/** Stands for everybody. */
export const EVERYBODY = "*";

const LOOK_MS = 500;

/** The switch that stops clients. It is kept in a folder of the data folder: it survives a restart, and all servers of the folder follow it. */
export class Pauses {
  readonly #files: PauseFiles;
  readonly #logger: Logger;
  readonly #listeners = new Set<() => void>();
  /** What was changed here and is not on disk yet; `undefined` for a client that goes on. */
  readonly #unwritten = new Map<string, Pause | undefined>();
  #onDisk: ReadonlyMap<string, Pause>;
  #pauses: ReadonlyMap<string, Pause>;
  #version: string;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** @throws Error when a pause is there and cannot be read: who was paused must not run because of that. */
  constructor(folder: string, logger: Logger) {
    this.#files = new PauseFiles(folder);
    this.#logger = logger;
    // Before it is read: what is written meanwhile is read again.
    this.#version = this.#files.version();
    this.#onDisk = this.#files.read();
    this.#pauses = this.#onDisk;
  }

  list(): readonly Pause[] {
    return [...this.#pauses.values()].toSorted((a, b) => (a.since < b.since ? -1 : 1));
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

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Holds at once, and is on disk when it resolves. One that cannot be written holds here all the same. */
  async pause(pause: Pause): Promise<void> {
    await this.#change(pause.client, pause);
  }

  /** Says whether it was paused. */
  async resume(client: string): Promise<boolean> {
    const wasPaused = this.#pauses.has(client);
    if (wasPaused) await this.#change(client, undefined);
    return wasPaused;
  }

  watch(): void {
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#listeners.clear();
  }

  /** Node's own watch of a file takes what it finds first for what was known before. */
  #look(): void {
    try {
      const version = this.#files.version();
      if (version === this.#version) return;
      this.#version = version;
      this.#onDisk = this.#files.read();
      this.#settle();
    } catch (error) {
      this.#logger.error("the paused clients cannot be read, those that were stay so", { error });
    }
  }

  async #change(client: string, wish: Pause | undefined): Promise<void> {
    const before = this.#unwritten.get(client);
    this.#unwritten.set(client, wish);
    this.#settle();
    const written = this.#turn.then(() => this.#write(client, wish, before));
    this.#turn = written.catch(() => undefined);
    await written;
  }

  async #write(client: string, wish: Pause | undefined, before: Pause | undefined): Promise<void> {
    try {
      await (wish === undefined ? this.#files.remove(client) : this.#files.write(wish));
    } catch (error) {
      // Whoever cannot be resumed on disk stays paused: the other servers have not heard of it either.
      if (wish === undefined) this.#forget(client, wish, before);
      throw error;
    }
    const onDisk = new Map(this.#onDisk);
    if (wish === undefined) onDisk.delete(client);
    else onDisk.set(client, wish);
    this.#onDisk = onDisk;
    this.#forget(client, wish);
  }

  /** Unless somebody has changed it again meanwhile. */
  #forget(client: string, wish: Pause | undefined, before?: Pause): void {
    if (this.#unwritten.get(client) === wish) this.#unwritten.delete(client);
    if (before !== undefined) this.#unwritten.set(client, before);
    this.#settle();
  }

  #settle(): void {
    const pauses = new Map(this.#onDisk);
    for (const [client, wish] of this.#unwritten) {
      if (wish === undefined) pauses.delete(client);
      else pauses.set(client, wish);
    }
    if (isSame(this.#pauses, pauses)) return;
    this.#pauses = pauses;
    for (const listener of this.#listeners) listener();
  }
}

function isSame(before: ReadonlyMap<string, Pause>, after: ReadonlyMap<string, Pause>): boolean {
  return before.size === after.size && [...after].every(([client, pause]) => isSamePause(before.get(client), pause));
}

function isSamePause(before: Pause | undefined, after: Pause): boolean {
  return before?.by === after.by && before.reason === after.reason && before.since === after.since;
}
