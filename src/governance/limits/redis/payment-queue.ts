import { OwlError } from "../../../errors/owl-error.ts";
import type { Spend } from "../shared/spend-memory.ts";

interface Payment {
  readonly spends: readonly Spend[];
  readonly onPaid: (epoch: string) => Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Batch {
  readonly seq: number;
  readonly payments: readonly Payment[];
}

const MAX_WAITING = 100_000;
const MAX_BATCH = 1000;
const RETRY_MS = 500;

/**
 * Group commit for what was spent: what comes while a batch is under way goes into the next one. A batch that may or may
 * not be on file is sent again under its number before anything else, for as long as it takes.
 */
export class PaymentQueue {
  readonly #write: (seq: number, spends: readonly Spend[]) => Promise<string>;
  #waiting: Payment[] = [];
  #inDoubt: Batch | undefined;
  #seq = 0;
  #writing: Promise<void> | undefined;
  #batch: Promise<boolean> | undefined;
  #soon: NodeJS.Immediate | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(write: (seq: number, spends: readonly Spend[]) => Promise<string>) {
    this.#write = write;
  }

  pay(spends: readonly Spend[], onPaid: (epoch: string) => Promise<void>): Promise<void> {
    if (this.#waiting.length >= MAX_WAITING)
      return Promise.reject(new OwlError("store_unavailable", "too many calls wait for what they cost to be on file"));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ spends, onPaid, resolve, reject });
      if (this.#writing === undefined) this.#soon ??= setImmediate(() => this.#run());
    });
  }

  /** When the batch that is under way or in doubt has ended, well or not. */
  async written(): Promise<void> {
    if (this.#inDoubt !== undefined) this.#run();
    await this.#batch;
  }

  /** One more try for everything. */
  async close(): Promise<void> {
    clearTimeout(this.#retry);
    if (this.#writing === undefined) this.#run();
    await this.#writing;
    clearTimeout(this.#retry);
  }

  #run(): void {
    clearImmediate(this.#soon);
    this.#soon = undefined;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  async #writeAll(): Promise<void> {
    while (this.#inDoubt !== undefined || this.#waiting.length > 0) {
      this.#batch = this.#writeBatch((this.#inDoubt ??= this.#nextBatch()));
      if (await this.#batch) continue;
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.#run(), RETRY_MS).unref();
      return;
    }
  }

  #nextBatch(): Batch {
    return { seq: ++this.#seq, payments: this.#waiting.splice(0, MAX_BATCH) };
  }

  async #writeBatch({ seq, payments }: Batch): Promise<boolean> {
    try {
      const epoch = await this.#write(seq, sumsOf(payments));
      this.#inDoubt = undefined;
      for (const { onPaid, resolve, reject } of payments) onPaid(epoch).then(resolve, reject);
      return true;
    } catch (error) {
      // Callers are told; what they spent stays to be written.
      for (const { reject } of [...payments, ...this.#waiting]) reject(error);
      return false;
    }
  }
}

/** In one order for all servers, so that none waits for another that waits for it. */
function sumsOf(payments: readonly Payment[]): readonly Spend[] {
  const sums = new Map<string, Spend>();
  for (const { key, month, micros } of payments.flatMap(({ spends }) => spends)) {
    const name = `${month} ${key}`;
    sums.set(name, { key, month, micros: micros + (sums.get(name)?.micros ?? 0) });
  }
  return [...sums.keys()].toSorted().flatMap((name) => sums.get(name) ?? []);
}
