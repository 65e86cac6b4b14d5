import { OwlError } from "../../../errors/owl-error.ts";
import { beginLocked, Database, type PostgresClient } from "../../../platform/postgres-database.ts";
import { chainCheckpoint, chainDrafts, type ChainedBatch, type ChainOptions } from "../chain.ts";
import { type Cut, signCut } from "../checkpoint.ts";
import type { LedgerKeys } from "../keys.ts";
import type { LedgerHead } from "../ledger.ts";
import type { DayShift, LedgerFilter, LedgerStats, Page, TimelineCount, TimelineSpan } from "../query.ts";
import { COLUMNS, type Draft, type LedgerRow, systemDraft, type Value } from "../row.ts";
import { type Appended, CUT_ROWS, type LedgerReader, type LedgerStore } from "../store.ts";
import type { VerifyOptions, VerifyReport } from "../verify.ts";
import { PostgresReader, toHead } from "./reader.ts";
import { APPEND_SQL, HEAD_SQL, INSERT_SQL, MIGRATIONS, TOUCH_SQL } from "./schema.ts";

export interface PostgresStoreOptions {
  readonly url: string;
  readonly keys: LedgerKeys;
  readonly checkpointEvery: number;
}

export async function openPostgresStore(options: PostgresStoreOptions): Promise<LedgerStore> {
  return new PostgresStore(await openLedgerDatabase(options), options);
}

/** Opens the database, creates the ledger's tables, and checks that its chain key is this one. @throws OwlError */
export async function openLedgerDatabase({ url, keys }: PostgresStoreOptions): Promise<Database> {
  const database = await Database.open(url, "ledger", MIGRATIONS);
  try {
    await claimKey(database, keys);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

export async function openPostgresReader(options: {
  readonly url: string;
  readonly loadKeys: () => LedgerKeys;
}): Promise<LedgerReader> {
  return new PostgresReader(new Database({ url: options.url, use: "read" }), options.loadKeys);
}

/** What one transaction writes: rows, and the first argument of the database function. */
export interface RowsAndMore {
  readonly drafts: readonly Draft[];
  readonly more: string;
}

/** The ledger that several servers share: an advisory lock serializes the appends of all of them. */
export class PostgresStore implements LedgerStore {
  protected readonly database: Database;
  readonly #database: Database;
  readonly #options: PostgresStoreOptions;
  readonly #reader: PostgresReader;
  #acknowledgedSeq = 0;
  /** The last row that this server has written. */
  #lastHead: LedgerHead | undefined;
  /**
   * Whether no other server wrote between the last two batches of this one: then the next need not read the head first.
   */
  #isAlone = false;

  constructor(database: Database, options: PostgresStoreOptions) {
    this.database = database;
    this.#database = database;
    this.#options = options;
    this.#reader = new PostgresReader(new Database({ url: options.url, use: "read" }), () => options.keys);
  }

  async append(drafts: readonly Draft[]): Promise<Appended> {
    return (
      (await this.#appendAlone(drafts)) ??
      (await this.#write(async (head, client) => {
        if (drafts.length === 0) await client.query(TOUCH_SQL);
        return chainDrafts(head, drafts, this.#chainOptions());
      }))
    );
  }

  /** One round trip instead of three; `undefined` when another server has written. */
  async #appendAlone(drafts: readonly Draft[]): Promise<Appended | undefined> {
    const known = this.#lastHead;
    if (!this.#isAlone || known === undefined || drafts.length === 0) return undefined;
    const batch = chainDrafts(known, drafts, this.#chainOptions());
    const [row] = await this.#database.query(APPEND_SQL, [known.seq, known.hash, toJson(batch.rows)]);
    this.#isAlone = typeof row === "object" && row !== null && Reflect.get(row, "fits") === true;
    return this.#isAlone ? this.#appended(batch) : undefined;
  }

  /**
   * Appends rows by a function of the database, `SELECT f(more, seq, hash, rows) AS reply`. It appends them after the
   * given head, or changes nothing and replies NULL. Takes one round trip when no other server writes and nothing has
   * to be read before; otherwise `look` returns, under the lock, what to write.
   */
  protected async appendBy(
    sql: string,
    {
      expected,
      look,
    }: { readonly expected: RowsAndMore | undefined; readonly look: (client: PostgresClient) => Promise<RowsAndMore> },
  ): Promise<{ readonly appended: Appended; readonly reply: unknown; readonly isExpected: boolean }> {
    const known = this.#lastHead;
    if (expected !== undefined && this.#isAlone && known !== undefined) {
      const batch = chainDrafts(known, expected.drafts, this.#chainOptions());
      const values = [expected.more, ...knownRow(known), toJson(batch.rows)];
      const reply = replyOf(await this.#database.query(sql, values));
      if (reply !== null) return { appended: this.#appended(batch), reply, isExpected: true };
    }
    let reply: unknown;
    const appended = await this.#write(async (head, client) => {
      const { drafts, more } = await look(client);
      const batch = chainDrafts(head, drafts, this.#chainOptions());
      const { rows } = await client.query<Record<string, unknown>>(sql, [more, ...knownRow(head), toJson(batch.rows)]);
      reply = replyOf(rows);
      if (reply === null) throw notStored();
      return { ...batch, rows: [] };
    });
    return { appended, reply, isExpected: false };
  }

  #appended({ seqs, checkpoints, head }: ChainedBatch): Appended {
    this.#lastHead = head;
    this.#acknowledgedSeq = Math.max(this.#acknowledgedSeq, head.seq);
    return { seqs, checkpoints, head };
  }

  seal(): Promise<Appended> {
    return this.#write(async (head, client) => {
      const { rows } = await client.query<{ kind: string }>("SELECT kind FROM ledger WHERE seq = $1", [head.seq]);
      const isSealed = head.seq === 0 || rows[0]?.kind === "checkpoint";
      return isSealed ? chainDrafts(head, [], this.#chainOptions()) : chainCheckpoint(head, this.#chainOptions());
    });
  }

  async hashAt(seq: number): Promise<string | undefined> {
    return (await this.get(seq))?.hash;
  }

  async cut(wantedMs: number): Promise<Cut | undefined> {
    let cut: Cut | undefined;
    await this.#write(async (head, client) => {
      const beforeMs = wantedMs - (await aheadMs(client));
      const last = await lastOfCut(client, beforeMs, head);
      const options = this.#chainOptions();
      if (last === undefined) return chainDrafts(head, [], options);
      cut = signCut(options.keys, { from: 1, to: last.seq, hash: last.hash, before: beforeMs, time: options.now });
      await client.query("DELETE FROM ledger WHERE seq <= $1", [last.seq]);
      return chainDrafts(head, [systemDraft("cut", options.now, cut)], options);
    });
    return cut;
  }

  head(): Promise<LedgerHead> {
    return this.#reader.head();
  }

  list(filter: LedgerFilter, page: Page): Promise<readonly LedgerRow[]> {
    return this.#reader.list(filter, page);
  }

  get(seq: number): Promise<LedgerRow | undefined> {
    return this.#reader.get(seq);
  }

  stats(filter: LedgerFilter, dayShifts?: readonly DayShift[]): Promise<LedgerStats> {
    return this.#reader.stats(filter, dayShifts);
  }

  count(filter: LedgerFilter): Promise<number> {
    return this.#reader.count(filter);
  }

  timeline(filter: LedgerFilter, span: TimelineSpan): Promise<readonly TimelineCount[]> {
    return this.#reader.timeline(filter, span);
  }

  verify(options: VerifyOptions): Promise<VerifyReport> {
    return this.#reader.verify(options);
  }

  async close(): Promise<void> {
    await Promise.all([this.#database.close(), this.#reader.close()]);
  }

  #chainOptions(): ChainOptions {
    const { keys, checkpointEvery } = this.#options;
    return { keys, checkpointEvery, now: Date.now() };
  }

  #write(make: (head: LedgerHead, client: PostgresClient) => Promise<ChainedBatch>): Promise<Appended> {
    return this.#database.transaction(async (client) => {
      const head = toHead(await beginLocked(client, "ledger", HEAD_SQL));
      if (head.seq < this.#acknowledgedSeq) throw shortened(head.seq, this.#acknowledgedSeq);
      const batch = await make(head, client);
      if (batch.rows.length > 0) {
        const stored = await client.query({ name: "append", text: INSERT_SQL, values: [toJson(batch.rows)] });
        if (stored.rowCount !== batch.rows.length) throw notStored();
      }
      await client.query("COMMIT");
      this.#isAlone = head.seq === this.#lastHead?.seq && head.hash === this.#lastHead.hash;
      return this.#appended(batch);
    });
  }
}

/** The database represents the head of an empty ledger as NULL. */
function knownRow({ seq, hash }: LedgerHead): readonly [number | null, string | null] {
  return seq === 0 ? [null, null] : [seq, hash];
}

function replyOf([row]: readonly unknown[]): unknown {
  return typeof row === "object" && row !== null ? Reflect.get(row, "reply") : null;
}

/** A draft has no `seq`. */
const DRAFT_COLUMNS = COLUMNS.slice(1);

function toJson(rows: ChainedBatch["rows"]): string {
  return JSON.stringify(
    rows.map(({ seq, draft, hash }) => {
      const row: Record<string, Value> = { seq, hash };
      for (const [index, value] of draft.entries()) row[DRAFT_COLUMNS[index] ?? ""] = value;
      return row;
    }),
  );
}

/**
 * How far this server's clock is ahead of the database's: a server must not remove rows that are not old by the shared
 * clock.
 */
async function aheadMs(client: PostgresClient): Promise<number> {
  const sql = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT AS now";
  const { rows } = await client.query<{ now: string }>(sql);
  return Math.max(0, Date.now() - Number(rows[0]?.now));
}

/**
 * The last of the oldest rows that are all older than `beforeMs`, at most as many as one cut takes. The newest row
 * always stays.
 */
async function lastOfCut(client: PostgresClient, beforeMs: number, head: LedgerHead): Promise<LedgerHead | undefined> {
  const { rows } = await client.query<Record<string, unknown>>(
    `WITH oldest AS (SELECT seq, time, hash FROM ledger ORDER BY seq LIMIT ${CUT_ROWS})
     SELECT seq, hash FROM oldest
     WHERE seq < $2 AND seq < COALESCE((SELECT min(seq) FROM oldest WHERE time >= $1), $2)
     ORDER BY seq DESC LIMIT 1`,
    [beforeMs, head.seq],
  );
  return rows[0] === undefined ? undefined : toHead(rows[0]);
}

async function claimKey(database: Database, keys: LedgerKeys): Promise<void> {
  await database.query("INSERT INTO ledger_meta VALUES ('chain_key_id', $1) ON CONFLICT DO NOTHING", [keys.chainKeyId]);
  const [row] = await database.query("SELECT value FROM ledger_meta WHERE name = 'chain_key_id'");
  const stored = typeof row === "object" && row !== null ? String(Reflect.get(row, "value")) : "";
  if (stored === keys.chainKeyId) return;
  throw new OwlError(
    "store_unavailable",
    `the shared ledger was made with the chain key ${stored}, not with ${keys.chainKeyId}`,
    {
      hint: "Servers that share a store share its keys: copy the first one's keys folder, or set ledger.keyFolder.",
      retryable: false,
    },
  );
}

/** A trigger that another program has put on the table can discard a row. */
function notStored(): OwlError {
  return new OwlError("store_unavailable", "the shared ledger did not store every row", {
    hint: "Run `owlclaw mcp-server ledger verify`: it names what was put on the table.",
  });
}

function shortened(seq: number, acknowledgedSeq: number): OwlError {
  return new OwlError(
    "store_unavailable",
    `the shared ledger ends with row ${seq}, and row ${acknowledgedSeq} was written`,
    {
      hint: "Rows were removed, or an older copy was put back: bring the newest back.",
    },
  );
}
