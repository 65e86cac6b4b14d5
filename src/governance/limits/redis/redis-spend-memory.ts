import { randomBytes } from "node:crypto";
import type { RedisConnection } from "../../../redis/redis-connection.ts";
import type { SpaceBook } from "../postgres/spend-book.ts";
import type { Spend, SpendMemory } from "../shared/spend-memory.ts";
import { BEGIN_SCRIPT } from "./limit-script.ts";
import { PaymentQueue } from "./payment-queue.ts";

export interface RedisSpendMemoryOptions {
  readonly connection: RedisConnection;
  readonly book: SpaceBook;
  readonly space: string;
  /** How long others are waited for that have not said what they hold. */
  readonly leaseMs: number;
}

const ID_BYTES = 9;
const SCAN_KEYS = "1000";

/** Redis counts, PostgreSQL remembers: a Redis that comes back empty, or older than it was, begins with what is on file. */
export class RedisSpendMemory implements SpendMemory {
  readonly member: string = newId();
  readonly #options: RedisSpendMemoryOptions;
  readonly #payments: PaymentQueue;
  #epoch = "";

  constructor(options: RedisSpendMemoryOptions) {
    this.#options = options;
    this.#payments = new PaymentQueue((seq, spends) => options.book.pay({ payer: this.member, seq, spends }));
  }

  get epoch(): string {
    return this.#epoch;
  }

  async recover({ isStale }: { readonly isStale: boolean }): Promise<void> {
    const { book, connection, leaseMs, space } = this.#options;
    const former = this.#epoch;
    // Nobody pays meanwhile, so what is read is all there is; and one server at a time does this.
    this.#epoch = await book.inTurn(async (turn) => {
      const onFile = await turn.epoch();
      const isWhole = onFile !== undefined && (await connection.send(["GET", `${space}epoch`])) === onFile;
      if (isWhole && !(isStale && onFile === former)) {
        await turn.join(this.member, onFile);
        return onFile;
      }
      // The first time, what Redis has counted so far is all that is known.
      if (onFile === undefined) await turn.takeOver(await this.#counted());
      const epoch = newId();
      const members = await turn.begin(epoch, leaseMs);
      await turn.join(this.member, epoch);
      await this.#begin({ epoch, members, spent: await turn.spent() });
      return epoch;
    });
  }

  pay(spends: readonly Spend[], onPaid: (epoch: string) => Promise<void>): Promise<void> {
    return this.#payments.pay(spends, onPaid);
  }

  paid(): Promise<void> {
    return this.#payments.written();
  }

  async leave(): Promise<void> {
    await this.#payments.close();
    // A server that cannot say good-bye is waited for once.
    await this.#options.book.leave(this.member).catch(() => undefined);
  }

  async #begin(memory: {
    readonly epoch: string;
    readonly members: readonly string[];
    readonly spent: readonly Spend[];
  }): Promise<void> {
    const { connection, space, leaseMs } = this.#options;
    const { epoch } = memory;
    // This server too: others must not go on before it has said what it holds.
    const members = [...new Set([...memory.members, this.member])];
    const spent = memory.spent.map(({ key, month, micros }) => [key, month, String(micros)]);
    await connection.run(BEGIN_SCRIPT, JSON.stringify({ prefix: space, epoch, members, spent, lease: leaseMs }));
  }

  async #counted(): Promise<readonly Spend[]> {
    const { connection, space } = this.#options;
    const spends: Spend[] = [];
    let cursor = "0";
    do {
      const reply = await connection.send(["SCAN", cursor, "MATCH", `${space}m:*`, "COUNT", SCAN_KEYS]);
      const parts: readonly unknown[] = Array.isArray(reply) ? reply : [];
      const [next, names] = parts;
      cursor = String(next);
      for (const name of Array.isArray(names) ? names.map(String) : []) {
        const [month = "", ...key] = name.slice(`${space}m:`.length).split(":");
        const micros = Number(await connection.send(["GET", name]));
        if (Number.isSafeInteger(micros) && micros > 0) spends.push({ key: key.join(":"), month, micros });
      }
    } while (cursor !== "0");
    return spends;
  }
}

function newId(): string {
  return randomBytes(ID_BYTES).toString("base64url");
}
