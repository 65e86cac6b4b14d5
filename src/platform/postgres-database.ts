import pg from "pg";
import { isOwlError, OwlError } from "../errors/owl-error.ts";

export type PostgresClient = pg.PoolClient;

const CONNECT_TIMEOUT_MS = 3000;
const STATEMENT_TIMEOUT_MS = 5000;
/** Statistics and pages of a verification read many rows. */
const READ_TIMEOUT_MS = 120_000;
/**
 * A role or a database may be configured not to wait for the disk: what was acknowledged would be lost in a crash. A
 * stricter setting is kept. Functions that wait for a lock must see what was committed meanwhile.
 */
const SETTINGS_SQL = `SELECT set_config('default_transaction_isolation', 'read committed', FALSE),
  CASE WHEN current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
    THEN set_config('synchronous_commit', 'on', FALSE) END`;
/**
 * Advisory locks are numbers that all programs on the database share: these begin with "owlclaw" in ASCII, cut to 48
 * bits.
 */
const LOCKS = {
  ledger: 0x6f_77_6c_63_6c_61,
  servers: 0x6f_77_6c_63_6c_63,
  pauses: 0x6f_77_6c_63_6c_64,
  approvals: 0x6f_77_6c_63_6c_66,
  calls: 0x6f_77_6c_63_6c_67,
};

/** A part of the store that has separate tables. */
export type StorePart = keyof typeof LOCKS;

/** What a column takes. */
export type PostgresValue = string | number | null;

export interface DatabaseOptions {
  readonly url: string;
  readonly use: "write" | "read";
}

/** Connections to the shared store. The next query replaces a connection that breaks. */
export class Database {
  readonly #pool: pg.Pool;

  constructor({ url, use }: DatabaseOptions) {
    const timeoutMs = use === "write" ? STATEMENT_TIMEOUT_MS : READ_TIMEOUT_MS;
    this.#pool = new pg.Pool({
      connectionString: url,
      max: 2,
      application_name: "owlclaw",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: timeoutMs,
      // Ends the wait for a server that has disappeared without closing the connection.
      query_timeout: timeoutMs + 1000,
      allowExitOnIdle: true,
      // A connection on which the settings fail is not used.
      ...(use === "write" && { verify: (client, done) => client.query(SETTINGS_SQL, done) }),
    });
    // An idle connection that ends is not an error: the pool makes a new one.
    this.#pool.on("error", () => undefined);
    // A connection that ends in use may emit another error after its query has failed, which must not end the server.
    this.#pool.on("connect", (client) => client.on("error", () => undefined));
  }

  /** Opens a database for writing, and creates the tables of its part. @throws OwlError when it cannot be used. */
  static async open(url: string, part: StorePart, steps: readonly string[]): Promise<Database> {
    const database = new Database({ url, use: "write" });
    try {
      await database.migrate(part, steps);
      return database;
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  async query(sql: string, values: readonly PostgresValue[] = []): Promise<readonly unknown[]> {
    try {
      const { rows } = await this.#pool.query<Record<string, unknown>>(sql, [...values]);
      return rows;
    } catch (error) {
      throw storeError(error);
    }
  }

  /** `act` begins and commits the transaction. An error in it rolls back. */
  async transaction<T>(act: (client: PostgresClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw storeError(error);
    });
    try {
      const result = await act(client);
      client.release();
      return result;
    } catch (error) {
      // Closing the connection also ends the transaction and its lock, whatever state they are in.
      client.release(true);
      throw storeError(error);
    }
  }

  /** Runs the migrations, in order; `owlclaw_schema` says how many have run. */
  async migrate(part: StorePart, steps: readonly string[]): Promise<void> {
    await this.transaction(async (client) => {
      // One server at a time: servers that start together would create their tables together.
      await beginLocked(client, "ledger");
      await client.query("CREATE TABLE IF NOT EXISTS owlclaw_schema (part TEXT PRIMARY KEY, version INTEGER NOT NULL)");
      const { rows } = await client.query<{ version: number }>("SELECT version FROM owlclaw_schema WHERE part = $1", [
        part,
      ]);
      const version = rows[0]?.version ?? 0;
      if (version > steps.length) throw tooNew({ part, version, known: steps.length });
      for (const step of steps.slice(version)) await client.query(step);
      await client.query("INSERT INTO owlclaw_schema VALUES ($1, $2) ON CONFLICT (part) DO UPDATE SET version = $2", [
        part,
        steps.length,
      ]);
      await client.query("COMMIT");
    });
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}

export function lockSql(part: StorePart): string {
  return `pg_advisory_xact_lock(${LOCKS[part]})`;
}

/**
 * Begins a transaction, waits for the lock that serializes servers, and runs one query under it, all in one round trip.
 * In this isolation level each statement sees what was committed before it began, so what follows is read after the
 * lock was taken. The lock ends with the transaction. Returns the first row.
 */
export async function beginLocked(client: PostgresClient, part: StorePart, question = "SELECT 1"): Promise<unknown> {
  const begin = `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT ${lockSql(part)}`;
  const results: unknown = await client.query(`${begin}; ${question}`);
  // Several statements at once have several results, which the driver's types do not describe.
  const last: unknown = Array.isArray(results) ? results.at(-1) : results;
  const rows: unknown = typeof last === "object" && last !== null ? Reflect.get(last, "rows") : undefined;
  return Array.isArray(rows) ? rows[0] : undefined;
}

/**
 * Messages of the driver may name host and user, never the password. They are passed on only when there is no error
 * code.
 */
function storeError(thrown: unknown): OwlError {
  if (isOwlError(thrown)) return thrown;
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  const reason = code === "" && thrown instanceof Error ? thrown.message : code;
  return new OwlError("store_unavailable", `the database in store.url cannot be used: ${reason || "no connection"}`, {
    hint: "Check that the PostgreSQL server in store.url runs, and that its user may create and write the tables.",
    cause: thrown,
  });
}

function tooNew({
  part,
  version,
  known,
}: {
  readonly part: StorePart;
  readonly version: number;
  readonly known: number;
}): OwlError {
  return new OwlError(
    "store_unavailable",
    `${part} in store.url have the schema ${version}, and this version knows ${known}`,
    {
      hint: "A newer OwlClaw wrote it: use that version, or another database.",
      retryable: false,
    },
  );
}
