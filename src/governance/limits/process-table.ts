import { identifySelf, isSharerAlive, type SharerIdentity } from "../../processes/identity.ts";
import type { LimitsDatabase } from "./limits-database.ts";

/** One that cannot be looked at, in another container, is dead when it has not moved for this long. */
const SILENCE_MS = 30_000;
const BEAT_MS = 5000;

export interface ProcessTableOptions {
  readonly steadyMs: () => number;
  /** What a dead one has left is taken over with its going. */
  readonly onDead: (id: number) => void;
  /** For tests: who lives and who does not. */
  readonly isAlive?: (identity: SharerIdentity, id: number) => boolean | undefined;
}

/** The processes that share the store. What a dead one held is free again. */
export class ProcessTable {
  readonly id: number;
  readonly #db: LimitsDatabase;
  readonly #options: ProcessTableOptions;
  readonly #seen = new Map<number, { beat: number; atMs: number }>();
  readonly #timer: NodeJS.Timeout;
  readonly #self: SharerIdentity = identifySelf();
  readonly #listed: { get(id: number): unknown };

  /** Inside a transaction. */
  constructor(db: LimitsDatabase, options: ProcessTableOptions) {
    this.#db = db;
    this.#options = options;
    this.#listed = db.prepare<[number]>("SELECT id FROM processes WHERE id = ?");
    const { pid, startedAt, namespace } = this.#self;
    const insert = db.prepare("INSERT INTO processes (pid, started, namespace, beat) VALUES (?, ?, ?, 0)");
    this.id = Number(insert.run(pid, startedAt, namespace).lastInsertRowid);
    const beat = db.prepare("UPDATE processes SET beat = beat + 1 WHERE id = ?");
    this.#timer = setInterval(() => attempt(() => beat.run(this.id)), BEAT_MS);
    this.#timer.unref();
  }

  /** Frees what dead processes held; says whether there was any. Inside a transaction. */
  reap(): boolean {
    const rows = this.#db.prepare("SELECT id, pid, started, namespace, beat FROM processes WHERE id <> ?").raw();
    const dead = rows.all(this.id).flatMap((row) => {
      if (!Array.isArray(row)) return [];
      const columns: readonly unknown[] = row;
      const [id, pid, startedAt, namespace, beat] = columns;
      const identity = { pid: Number(pid), startedAt: String(startedAt), namespace: String(namespace) };
      return this.#isDead(Number(id), identity, Number(beat)) ? [Number(id)] : [];
    });
    for (const id of dead) {
      this.#options.onDead(id);
      this.#forget(id);
    }
    return dead.length > 0;
  }

  /**
   * One that was silent for long and was taken for dead says that it is not. Inside a transaction.
   * Whether that was so: then the others have forgotten what it holds.
   */
  enlist(): boolean {
    if (this.#listed.get(this.id) !== undefined) return false;
    const { pid, startedAt, namespace } = this.#self;
    const insert = "INSERT INTO processes (id, pid, started, namespace, beat) VALUES (?, ?, ?, ?, 0)";
    this.#db.prepare(insert).run(this.id, pid, startedAt, namespace);
    return true;
  }

  /** Inside a transaction. */
  leave(): void {
    this.#forget(this.id);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #isDead(id: number, identity: SharerIdentity, beat: number): boolean {
    const verdict = (this.#options.isAlive ?? isSharerAlive)(identity, id);
    if (verdict !== undefined) return !verdict;
    const now = this.#options.steadyMs();
    const seen = this.#seen.get(id);
    if (seen === undefined || seen.beat !== beat) {
      this.#seen.set(id, { beat, atMs: now });
      return false;
    }
    return now - seen.atMs > SILENCE_MS;
  }

  #forget(id: number): void {
    this.#db.prepare("DELETE FROM held WHERE process = ?").run(id);
    this.#db.prepare("DELETE FROM processes WHERE id = ?").run(id);
    this.#seen.delete(id);
  }
}

function attempt(act: () => unknown): void {
  try {
    act();
  } catch {
    // The next beat tries again, and calls find out for themselves that the store is gone.
  }
}
