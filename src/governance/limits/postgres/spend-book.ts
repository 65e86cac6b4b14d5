import { beginLocked, Database, type PostgresClient } from "../../../postgres/database.ts";
import type { Spend } from "../shared/spend-memory.ts";
import { LIMIT_MIGRATIONS } from "./limit-function.ts";

export interface SpendBatch {
  readonly payer: string;
  /** A batch that comes twice under one number counts once. */
  readonly seq: number;
  readonly spends: readonly Spend[];
}

/** What was spent in one space, on file. */
export interface SpaceBook {
  /** Hands back the epoch that it was on file in. */
  pay(batch: SpendBatch): Promise<string>;
  inTurn<T>(act: (turn: BookTurn) => Promise<T>): Promise<T>;
  leave(member: string): Promise<void>;
}

/** While one server has it, nobody pays. */
export interface BookTurn {
  epoch(): Promise<string | undefined>;
  /** Hands back who is still there of those who took part in former ones. */
  begin(epoch: string, leaseMs: number): Promise<readonly string[]>;
  join(member: string, epoch: string): Promise<void>;
  spent(): Promise<readonly Spend[]>;
  takeOver(spends: readonly Spend[]): Promise<void>;
}

const PAY_SQL = "SELECT owlclaw_pay_1($1, $2, $3, $4::jsonb) AS epoch";
const BEGIN_SQL = `INSERT INTO limit_epochs VALUES ($1, $2, now())
  ON CONFLICT (space) DO UPDATE SET epoch = EXCLUDED.epoch, began_at = EXCLUDED.began_at`;
const JOIN_SQL =
  "INSERT INTO limit_members VALUES ($1, $2, $3) ON CONFLICT (space, name) DO UPDATE SET epoch = EXCLUDED.epoch";
/** Whoever had a lease to join the last epoch and has not done so is gone. */
const GONE_SQL = `DELETE FROM limit_members USING limit_epochs
  WHERE limit_members.space = $1 AND limit_epochs.space = $1 AND limit_members.epoch <> limit_epochs.epoch
  AND began_at < now() - $2::BIGINT * INTERVAL '1 millisecond'`;
/** Time zones differ by a day, and calls may last from one month into the next. */
const SPENT_SQL = `SELECT key, month, micros FROM limit_spent
  WHERE space = $1 AND month >= to_char(now() - INTERVAL '40 days', 'YYYY-MM')`;
const TAKE_OVER_SQL = `INSERT INTO limit_spent SELECT $1, key, month, micros
  FROM jsonb_to_recordset($2::jsonb) AS spent (key TEXT, month TEXT, micros BIGINT)
  ON CONFLICT (space, key, month) DO UPDATE SET micros = GREATEST(limit_spent.micros, EXCLUDED.micros)`;
const TIDY_SQL = `WITH spent AS (
    DELETE FROM limit_spent WHERE space = $1 AND month < to_char(now() - INTERVAL '400 days', 'YYYY-MM')
  )
  DELETE FROM limit_payers WHERE space = $1 AND paid_at < now() - INTERVAL '1 day'`;

/** Budgets in PostgreSQL, beside a Redis that counts. */
export class SpendBook {
  readonly #database: Database;

  private constructor(database: Database) {
    this.#database = database;
  }

  /** @throws OwlError when the database cannot be used. */
  static async open(url: string): Promise<SpendBook> {
    return new SpendBook(await Database.open(url, "limits", LIMIT_MIGRATIONS));
  }

  of(space: string): SpaceBook {
    const database = this.#database;
    return {
      async pay({ payer, seq, spends }) {
        const [row] = await database.query(PAY_SQL, [space, payer, seq, JSON.stringify(spends)]);
        return textOf(row, "epoch");
      },
      inTurn: (act) =>
        database.transaction(async (client) => {
          await beginLocked(client, "payments");
          const result = await act(turnOf(client, space));
          await client.query("COMMIT");
          return result;
        }),
      leave: async (member) =>
        void (await database.query("DELETE FROM limit_members WHERE space = $1 AND name = $2", [space, member])),
    };
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

function turnOf(client: PostgresClient, space: string): BookTurn {
  const ask = async (sql: string, ...values: readonly string[]): Promise<readonly unknown[]> =>
    (await client.query<Record<string, unknown>>(sql, [space, ...values])).rows;
  return {
    async epoch() {
      const [row] = await ask("SELECT epoch FROM limit_epochs WHERE space = $1");
      return row === undefined ? undefined : textOf(row, "epoch");
    },
    async begin(epoch, leaseMs) {
      await ask(TIDY_SQL);
      await ask(GONE_SQL, String(leaseMs));
      await ask(BEGIN_SQL, epoch);
      return (await ask("SELECT name FROM limit_members WHERE space = $1")).map((row) => textOf(row, "name"));
    },
    join: async (member, epoch) => void (await ask(JOIN_SQL, member, epoch)),
    spent: async () =>
      (await ask(SPENT_SQL)).map((row) => ({
        key: textOf(row, "key"),
        month: textOf(row, "month"),
        micros: Number(textOf(row, "micros")),
      })),
    takeOver: async (spends) => void (await ask(TAKE_OVER_SQL, JSON.stringify(spends))),
  };
}

function textOf(row: unknown, column: string): string {
  return typeof row === "object" && row !== null ? String(Reflect.get(row, column)) : "";
}
