import { setImmediate as nextTurn } from "node:timers/promises";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { CallId, Settlement } from "../ledger/store.ts";
import type { Counter } from "../policy/terms.ts";
import type { Admission, AdmitRequest, GovernanceStore, Used } from "./governance-store.ts";

interface Waiting {
  readonly request: AdmitRequest;
  readonly resolve: (admission: Admission) => void;
  readonly reject: (error: OwlError) => void;
}

export interface AdmissionsOptions {
  readonly store: Pick<GovernanceStore, "admit" | "usage">;
  /** Settles calls, many of them in one durable transaction, and also the calls of processes that have died. */
  readonly ledger: Pick<Ledger, "settle" | "recover">;
}

const MAX_BATCH = 512;
const MAX_WAITING = 20_000;
/** At most this often, a refusal triggers a check for processes that have died. */
const LOOK_MS = 200;

/** Admits the calls of one server: those of one turn of the event loop share a transaction. */
export class Admissions {
  readonly #options: AdmissionsOptions;
  #waiting: Waiting[] = [];
  #isRunning = false;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: AdmissionsOptions) {
    this.#options = options;
  }

  /** Rejects with `store_unavailable` when the call cannot be counted. */
  admit(request: AdmitRequest): Promise<Admission> {
    if (this.#waiting.length >= MAX_WAITING) return Promise.reject(tooMany());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      if (!this.#isRunning) void this.#run();
    });
  }

  usage(counters: readonly Counter[]): Promise<readonly Used[]> {
    return this.#options.store.usage(counters).catch((error: unknown) => {
      throw uncounted(error);
    });
  }

  /** Releases what a call holds that has not run: it gets no row and no cost. */
  async release(call: CallId): Promise<void> {
    await this.#options.ledger.settle({ call });
  }

  /** A call that waited for an approval begins to run: `draft` is the row that it gets if this process dies. */
  async begin(call: CallId, draft: Settlement["goesOnAs"]): Promise<void> {
    await this.#options.ledger.settle({ call, goesOnAs: draft });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      // Waits for the rest of the calls of this turn of the event loop.
      await nextTurn();
      const batch = this.#waiting.slice(0, MAX_BATCH);
      this.#waiting = this.#waiting.slice(MAX_BATCH);
      await this.#admit(batch);
    }
    this.#isRunning = false;
  }

  async #admit(batch: readonly Waiting[]): Promise<void> {
    try {
      const { store } = this.#options;
      const admissions = await store.admit(batch.map(({ request }) => request));
      const refused = batch.filter((_, index) => isForOthers(admissions[index]));
      const again = refused.length > 0 && (await this.#haveDied()) ? refused : [];
      batch.forEach((waiting, index) => {
        const admission = admissions[index];
        if (again.includes(waiting)) return;
        if (admission === undefined) waiting.reject(uncounted());
        else waiting.resolve(admission);
      });
      if (again.length > 0) await this.#admit(again);
    } catch (thrown) {
      const error = uncounted(thrown);
      for (const { reject } of batch) reject(error);
    }
  }

  /** Before a call is refused because of what other processes hold, this checks whether they are alive. */
  async #haveDied(): Promise<boolean> {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs < LOOK_MS) return false;
    this.#lookedAtMs = nowMs;
    return (await this.#options.ledger.recover()) > 0;
  }
}

function isForOthers(admission: Admission | undefined): boolean {
  if (admission === undefined || admission.ok) return false;
  return admission.refusal.name === "concurrency" || admission.refusal.name === "monthlyBudget";
}

function uncounted(cause?: unknown): OwlError {
  const hint = cause === undefined ? undefined : toOwlError(cause, "store_unavailable").hint;
  return new OwlError("store_unavailable", "calls cannot be counted at the moment, so none is let through", {
    cause,
    ...(hint !== undefined && { hint }),
  });
}

function tooMany(): OwlError {
  return new OwlError("store_unavailable", "too many calls wait to be counted", { facts: { waiting: MAX_WAITING } });
}
