import * as z from "zod";
import { Database } from "../../platform/postgres-database.ts";

const MIGRATIONS: readonly string[] = [
  `CREATE TABLE owlclaw_approvals (
    id TEXT PRIMARY KEY,
    server TEXT NOT NULL,
    approval TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    answer TEXT,
    is_done BOOLEAN
  )`,
];

/** A server that is silent for longer is treated as dead, and the calls that wait on it as gone. */
const LIFE = "INTERVAL '5 seconds'";
const OLD = "INTERVAL '1 minute'";

/**
 * Publishes the calls that wait on this server, and returns those that wait on any server without the approvals that
 * this server already has. A call that still waits after an answer was rejected waits for the next answer.
 */
const SYNC_SQL = `WITH here AS (SELECT id, approval FROM jsonb_to_recordset($2::jsonb) AS one (id TEXT, approval TEXT)),
  told AS (
    INSERT INTO owlclaw_approvals SELECT id, $1, approval, now() + ${LIFE} FROM here
    ON CONFLICT (id) DO UPDATE SET until = EXCLUDED.until, is_done = NULL,
      answer = CASE WHEN owlclaw_approvals.is_done IS NULL THEN owlclaw_approvals.answer END
    WHERE owlclaw_approvals.server = EXCLUDED.server
  ),
  gone AS (
    DELETE FROM owlclaw_approvals WHERE (server = $1 AND answer IS NULL AND id NOT IN (SELECT id FROM here))
      OR (server <> $1 AND until < now() - ${OLD})
      OR (server = $1 AND is_done IS NOT NULL AND until < now() - ${OLD})
  )
  SELECT id, server, answer, is_done,
    CASE WHEN server = $1 OR id IN (SELECT jsonb_array_elements_text($3::jsonb)) THEN NULL ELSE approval END AS approval
  FROM owlclaw_approvals WHERE until > now()`;
const ANSWER_SQL = `UPDATE owlclaw_approvals SET answer = $2
  WHERE id = $1 AND answer IS NULL AND until > now() RETURNING id`;
/** Withdraws an answer that the other server has not processed. A processed answer stays. */
const WITHDRAW_SQL = "DELETE FROM owlclaw_approvals WHERE id = $1 AND is_done IS NULL RETURNING id";

const rowSchema = z.object({
  id: z.string(),
  server: z.string(),
  approval: z.string().nullable(),
  answer: z.string().nullable(),
  is_done: z.boolean().nullable(),
});

export type ApprovalRow = z.output<typeof rowSchema>;

/** The calls that wait on servers that share a database: a row for each call, with its answer. */
export class PostgresApprovals {
  readonly #database: Database;

  private constructor(database: Database) {
    this.#database = database;
  }

  /** @throws OwlError when the database cannot be used. */
  static async open(url: string): Promise<PostgresApprovals> {
    return new PostgresApprovals(await Database.open(url, "approvals", MIGRATIONS));
  }

  async sync(
    server: string,
    here: readonly { readonly id: string; readonly approval: string }[],
    knownIds: readonly string[],
  ): Promise<readonly ApprovalRow[]> {
    const rows = await this.#database.query(SYNC_SQL, [server, JSON.stringify(here), JSON.stringify(knownIds)]);
    return rows.map((row) => rowSchema.parse(row));
  }

  /** Returns false when the call has an answer already, or does not wait any more. */
  async answer(id: string, answer: string): Promise<boolean> {
    return (await this.#database.query(ANSWER_SQL, [id, answer])).length > 0;
  }

  async setDone(id: string, isDone: boolean): Promise<void> {
    await this.#database.query("UPDATE owlclaw_approvals SET is_done = $2::BOOLEAN WHERE id = $1", [
      id,
      String(isDone),
    ]);
  }

  /** Whether the server where the call waits has applied the answer; `undefined` until it has processed it. */
  async isDone(id: string): Promise<boolean | undefined> {
    const [row] = await this.#database.query("SELECT is_done FROM owlclaw_approvals WHERE id = $1", [id]);
    const { is_done: isDone } = z.object({ is_done: z.boolean().nullable() }).parse(row ?? { is_done: false });
    return isDone ?? undefined;
  }

  async withdraw(id: string): Promise<boolean> {
    return (await this.#database.query(WITHDRAW_SQL, [id])).length > 0;
  }

  async leave(server: string): Promise<void> {
    await this.#database.query("DELETE FROM owlclaw_approvals WHERE server = $1", [server]);
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}
