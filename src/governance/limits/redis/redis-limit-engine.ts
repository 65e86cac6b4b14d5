import type { RedisConnection } from "../../../redis/redis-connection.ts";
import type { SpendBook } from "../postgres/spend-book.ts";
import type { LimitEngine } from "../shared/limit-engine.ts";
import { LIMIT_SCRIPT } from "./limit-script.ts";
import { RedisSpendMemory } from "./redis-spend-memory.ts";

const SPACE = "owlclaw:{limits}:";

/**
 * Counts in Redis: the script is the transaction.
 * @param book Where what was spent is on file; without one Redis alone knows it.
 */
export function redisLimitEngine(connection: RedisConnection, book?: SpendBook): LimitEngine {
  return {
    space: SPACE,
    get isReady() {
      return connection.isReady;
    },
    run: (batch) => connection.run(LIMIT_SCRIPT, batch),
    forget: async (space, holders) => void (await connection.send(["ZREM", `${space}alive`, ...holders])),
    onReturn: (listener) => connection.onReturn(listener),
    ...(book !== undefined && {
      memoryOf: (space: string, leaseMs: number) =>
        // Servers that count in PostgreSQL alone have the same sums.
        new RedisSpendMemory({ connection, book: book.of(space === SPACE ? "" : space), space, leaseMs }),
    }),
  };
}
