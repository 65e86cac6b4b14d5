import pg from "pg";
import { isOwlError, OwlError } from "../../errors/owl-error.ts";
import type { Value } from "../row.ts";
import { MIGRATIONS } from "./schema.ts";

export type PostgresClient = pg.PoolClient;

const CONNECT_TIMEOUT_MS = 3000;
const STATEMENT_TIMEOUT_MS = 5000;
/** Statistics and pages of verification look at many rows. */
const READ_TIMEOUT_MS = 120_000;
/** Advisory locks are numbers that everybody on the database shares: this one is "owlclaw" in ASCII, cut to 48 bits. */
const LEDGER_LOCK = 0x6f_77_6c_63_6c_61;

/**
 * `BEGIN` and the lock that makes appends of several servers one after another; it ends with the transaction. In this
 * isolation level each statement sees what was committed before it began, so what follows is younger than the lock.
 */
const BEGIN_LOCKED_SQL = `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(${LEDGER_LOCK})`;

export interface DatabaseOptions {
  readonly url: string;
  readonly use: "write" | "read";
}

/** Connections to the shared store. One that breaks is replaced by the next query. */
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
      // A server that is gone without a word would otherwise be waited for.
      query_timeout: timeoutMs + 1000,
      allowExitOnIdle: true,
    });
    // An idle connection that ends is no event: the pool makes a new one.
    this.#pool.on("error", () => undefined);
  }

  async query(sql: string, values: readonly Value[] = []): Promise<readonly unknown[]> {
    try {
      const { rows } = await this.#pool.query<Record<string, unknown>>(sql, [...values]);
      return rows;
    } catch (error) {
      throw storeError(error);
    }
  }

  /** `act` begins and commits; what it throws rolls back. */
  async transaction<T>(act: (client: PostgresClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw storeError(error);
    });
    try {
      const result = await act(client);
      client.release();
      return result;
    } catch (error) {
      // The connection goes, and with it the transaction and its lock, whatever state they are in.
      client.release(true);
      throw storeError(error);
    }
  }

  async migrate(): Promise<void> {
    await this.transaction(async (client) => {
      await beginLocked(client);
      await client.query("CREATE TABLE IF NOT EXISTS owlclaw_schema (part TEXT PRIMARY KEY, version INTEGER NOT NULL)");
      const { rows } = await client.query<{ version: number }>(
        "SELECT version FROM owlclaw_schema WHERE part = 'ledger'",
      );
      const version = rows[0]?.version ?? 0;
      if (version > MIGRATIONS.length) throw tooNew(version);
      for (const step of MIGRATIONS.slice(version)) await client.query(step);
      await client.query(
        "INSERT INTO owlclaw_schema VALUES ('ledger', $1) ON CONFLICT (part) DO UPDATE SET version = $1",
        [MIGRATIONS.length],
      );
      await client.query("COMMIT");
    });
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}

/** Begins, waits for the lock, and asks one question behind it, all in one round trip. Hands back the first row. */
export async function beginLocked(client: PostgresClient, question = "SELECT 1"): Promise<unknown> {
  const results: unknown = await client.query(`${BEGIN_LOCKED_SQL}; ${question}`);
  // Several statements at once have several results, which the driver's types do not know.
  const last: unknown = Array.isArray(results) ? results.at(-1) : results;
  const rows: unknown = typeof last === "object" && last !== null ? Reflect.get(last, "rows") : undefined;
  return Array.isArray(rows) ? rows[0] : undefined;
}

/** Messages of the driver may name host and user, never the password; none goes to clients whole. */
function storeError(thrown: unknown): OwlError {
  if (isOwlError(thrown)) return thrown;
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  const reason = code === "" && thrown instanceof Error ? thrown.message : code;
  return new OwlError("store_unavailable", `the ledger's database cannot be used: ${reason || "no connection"}`, {
    hint: "Check that the PostgreSQL server in store.url runs, and that its user may create and write the tables.",
    cause: thrown,
  });
}

function tooNew(version: number): OwlError {
  return new OwlError(
    "store_unavailable",
    `the ledger has the schema ${version}, and this version knows ${MIGRATIONS.length}`,
    {
      hint: "A newer OwlClaw wrote it: use that version, or another database.",
      retryable: false,
    },
  );
}
