import { beginLocked, Database } from "../../../postgres/database.ts";
import type { LimitEngine } from "../shared/limit-engine.ts";
import { LIMIT_MIGRATIONS, RUN_SQL, TIDY_SQL } from "./limit-function.ts";

const SPACE = "";
const TIDY_MS = 3_600_000;

/** Counts in PostgreSQL: a function is the transaction, and servers stand in line for it. */
export class PostgresLimitEngine implements LimitEngine {
  readonly space = SPACE;
  readonly isReady = true;
  readonly #database: Database;
  readonly #tidying: NodeJS.Timeout;

  private constructor(database: Database) {
    this.#database = database;
    // What is left over costs room and is wrong for nobody: another hour will do.
    this.#tidying = setInterval(() => void this.tidy().catch(() => undefined), TIDY_MS).unref();
  }

  /** @throws OwlError when the database cannot be used. */
  static async open(url: string): Promise<PostgresLimitEngine> {
    const database = new Database({ url, use: "write" });
    try {
      await database.migrate("limits", LIMIT_MIGRATIONS);
      const engine = new PostgresLimitEngine(database);
      await engine.tidy();
      return engine;
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  async run(batch: string): Promise<unknown> {
    const [row] = await this.#database.query(RUN_SQL, [batch]);
    return typeof row === "object" && row !== null ? Reflect.get(row, "reply") : undefined;
  }

  async forget(space: string, holders: readonly string[]): Promise<void> {
    await this.#database.query(
      "UPDATE limit_holders SET until = 0 WHERE space = $1 AND name IN (SELECT jsonb_array_elements_text($2::jsonb))",
      [space, JSON.stringify(holders)],
    );
  }

  /** The next batch finds out by itself. */
  onReturn(): void {}

  tidy(space: string = SPACE): Promise<void> {
    return this.#database.transaction(async (client) => {
      await beginLocked(client, "limits");
      await client.query(TIDY_SQL, [space]);
      await client.query("COMMIT");
    });
  }

  close(): Promise<void> {
    clearInterval(this.#tidying);
    return this.#database.close();
  }
}
