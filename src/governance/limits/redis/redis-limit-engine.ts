import type { RedisConnection } from "../../../redis/redis-connection.ts";
import type { LimitEngine } from "../shared/limit-engine.ts";
import { LIMIT_SCRIPT } from "./limit-script.ts";

/** Counts in Redis: the script is the transaction. */
export function redisLimitEngine(connection: RedisConnection): LimitEngine {
  return {
    space: "owlclaw:{limits}:",
    get isReady() {
      return connection.isReady;
    },
    run: (batch) => connection.run(LIMIT_SCRIPT, batch),
    forget: async (space, holders) => void (await connection.send(["ZREM", `${space}alive`, ...holders])),
    onReturn: (listener) => connection.onReturn(listener),
  };
}
