import type { LeftJournals } from "./left-journals.ts";
import type { LimitTables } from "./limit-tables.ts";
import type { ProcessTable } from "./process-table.ts";

/** A neighbour that counts in memory hands over within milliseconds; one that is frozen loses its right to. */
export const HANDOVER_MS = 1000;

/** Agents think between their calls. */
const KEPT_MS = 2000;

/** The right of the only process at a file to count in its own memory. Methods run inside a transaction. */
export class FileClaim {
  /** As of the last transaction that stands. A process that was frozen since then may have lost it. */
  isHeld = false;
  readonly #tables: LimitTables;
  readonly #processes: ProcessTable;
  readonly #journals: LeftJournals;
  #waitingSinceMs: number | undefined;

  constructor(options: {
    readonly tables: LimitTables;
    readonly processes: ProcessTable;
    readonly journals: LeftJournals;
  }) {
    this.#tables = options.tables;
    this.#processes = options.processes;
    this.#journals = options.journals;
  }

  /** Whether a neighbour has it. */
  mustWait(): boolean {
    const { id } = this.#processes;
    if (!this.#tables.isCountedElsewhere(id)) {
      this.#waitingSinceMs = undefined;
      return false;
    }
    this.#processes.reap();
    const now = performance.now();
    this.#waitingSinceMs ??= now;
    if (now - this.#waitingSinceMs > HANDOVER_MS) this.#takeAway();
    return this.#tables.isCountedElsewhere(id);
  }

  /** Whether it is kept through a silence: until that is long, or somebody else has come. At any time. */
  outlasts(idleMs: number): boolean {
    return idleMs < KEPT_MS && !this.#tables.isDisturbed();
  }

  /** Takes it or keeps it when nobody else is there, and gives it back otherwise. Whether it is ours then. */
  renew(): boolean {
    const { id } = this.#processes;
    const isOnly = this.#tables.isOnlyProcess(id);
    if (isOnly && !this.#tables.hasClaim(id)) this.#tables.claim(id);
    else if (!isOnly && this.isHeld) this.drop();
    return isOnly;
  }

  /** One's own: somebody else may have it, since this process was taken for dead. */
  drop(): void {
    this.#tables.dropClaim(this.#processes.id);
  }

  /** What its owner has on file counts from now on; what it has in memory it adds when it wakes. */
  #takeAway(): void {
    for (const owner of this.#tables.claimants()) {
      this.#journals.fold(owner);
      this.#tables.dropClaim(owner);
    }
  }
}
