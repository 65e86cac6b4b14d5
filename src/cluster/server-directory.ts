import { Database } from "../platform/postgres-database.ts";
import type { RedisConnection } from "../platform/redis-connection.ts";

/** Where all servers can look up where one of them is. */
export interface ServerDirectory {
  put(serverId: string, url: string, leaseMs: number): Promise<void>;
  find(serverId: string): Promise<string | undefined>;
  remove(serverId: string): Promise<void>;
  /** Calls back when it may have lost its memory, where it can tell. */
  onReturn(listener: () => void): void;
}

export const SERVER_KEY_PREFIX = "owlclaw:server:";

export function redisDirectory(connection: RedisConnection): ServerDirectory {
  const keyOf = (serverId: string): string => `${SERVER_KEY_PREFIX}${serverId}`;
  return {
    put: async (serverId, url, leaseMs) =>
      void (await connection.send(["SET", keyOf(serverId), url, "PX", String(Math.ceil(leaseMs))])),
    async find(serverId) {
      const url = await connection.send(["GET", keyOf(serverId)]);
      return typeof url === "string" ? url : undefined;
    },
    remove: async (serverId) => void (await connection.send(["DEL", keyOf(serverId)])),
    onReturn: (listener) => connection.onReturn(listener),
  };
}

const MIGRATIONS: readonly string[] = [
  "CREATE TABLE owlclaw_servers (id TEXT PRIMARY KEY, url TEXT NOT NULL, until TIMESTAMPTZ NOT NULL)",
];
const PUT_SQL = `INSERT INTO owlclaw_servers VALUES ($1, $2, clock_timestamp() + $3 * INTERVAL '1 millisecond')
  ON CONFLICT (id) DO UPDATE SET url = EXCLUDED.url, until = EXCLUDED.until`;
const FIND_SQL = "SELECT url FROM owlclaw_servers WHERE id = $1 AND until > clock_timestamp()";
const REMOVE_SQL = "DELETE FROM owlclaw_servers WHERE id = $1 OR until < clock_timestamp() - INTERVAL '1 day'";

export async function openPostgresDirectory(url: string): Promise<ServerDirectory & { close(): Promise<void> }> {
  const database = await Database.open(url, "servers", MIGRATIONS);
  return {
    put: async (serverId, at, leaseMs) => void (await database.query(PUT_SQL, [serverId, at, leaseMs])),
    async find(serverId) {
      const [row] = await database.query(FIND_SQL, [serverId]);
      return typeof row === "object" && row !== null ? String(Reflect.get(row, "url")) : undefined;
    },
    remove: async (serverId) => void (await database.query(REMOVE_SQL, [serverId])),
    onReturn: () => undefined,
    close: () => database.close(),
  };
}
