import { OwlError } from "../../../errors/owl-error.ts";
import { chainCheckpoint, chainDrafts, type ChainedBatch, GENESIS } from "../chain.ts";
import { type Cut, signCut } from "../checkpoint.ts";
import type { LedgerKeys } from "../keys.ts";
import type { LedgerHead } from "../ledger.ts";
import { type Draft, systemDraft } from "../row.ts";
import { type Appended, CUT_ROWS } from "../store.ts";
import {
  type ConnectionMode,
  fileIdentity,
  openConnection,
  type SqliteConnection,
  INSERT_SQL,
  TOUCH_SQL,
  isLocked,
  storeError,
} from "./connection.ts";

export interface SqliteWriterOptions {
  readonly path: string;
  readonly keys: LedgerKeys;
  readonly checkpointEvery: number;
  /** Default: `write`. */
  readonly mode?: Exclude<ConnectionMode, "read">;
}

interface OpenFile {
  readonly db: SqliteConnection;
  readonly begin: ReturnType<SqliteConnection["prepare"]>;
  readonly commit: ReturnType<SqliteConnection["prepare"]>;
  readonly insert: ReturnType<SqliteConnection["prepare"]>;
  readonly selectHead: ReturnType<SqliteConnection["prepare"]>;
  readonly identity: string | undefined;
}

/**
 * Appends to the ledger's file. After an error the file is closed, and the next write opens it again; a locked file
 * stays open.
 */
export class SqliteWriter {
  readonly #options: SqliteWriterOptions;
  #file: OpenFile | undefined;
  /** The highest row that was acknowledged: a file that ends before it is not the same ledger any more. */
  #acknowledgedSeq = 0;

  constructor(options: SqliteWriterOptions) {
    this.#options = options;
  }

  append(drafts: readonly Draft[]): Appended {
    return this.appendWith((db) => {
      if (drafts.length === 0) db.exec(TOUCH_SQL);
      return drafts;
    });
  }

  /** Appends rows together with other changes, in one transaction. */
  appendWith(prepare: (db: SqliteConnection) => readonly Draft[]): Appended {
    return this.#write((head, { db }) => chainDrafts(head, prepare(db), this.#chainOptions()));
  }

  /** A transaction without rows. */
  transact<T>(act: (db: SqliteConnection) => T): T {
    return this.#attempt(({ db, begin, commit }) => {
      begin.run([]);
      const result = act(db);
      commit.run([]);
      return result;
    });
  }

  /** Signs the head, unless it is a signature itself. */
  seal(): Appended {
    return this.#write((head, { db }) => {
      const isSealed = firstValue(db, `SELECT kind FROM ledger WHERE seq = ${head.seq}`) === "checkpoint";
      return head.seq === 0 || isSealed ? unchanged(head) : chainCheckpoint(head, this.#chainOptions());
    });
  }

  hashAt(seq: number): string | undefined {
    return this.#attempt(({ db }) => {
      const [row] = db.prepare("SELECT hash FROM ledger WHERE seq = ?").raw().all([seq]);
      return Array.isArray(row) ? String(row[0]) : undefined;
    });
  }

  cut(beforeMs: number): Cut | undefined {
    let cut: Cut | undefined;
    this.#write((head, { db }) => {
      const range = cutRange(db, beforeMs);
      if (range === undefined) return unchanged(head);
      const hash = String(firstValue(db, `SELECT hash FROM ledger WHERE seq = ${range.to}`));
      const now = Date.now();
      cut = signCut(this.#options.keys, { from: 1, to: range.to, hash, before: beforeMs, time: now });
      db.exec(`DELETE FROM ledger WHERE seq <= ${range.to}`);
      return chainDrafts(head, [systemDraft("cut", now, cut)], this.#chainOptions());
    });
    return cut;
  }

  /** Moves the content of the log to the database file. Writers wait only while its last part is moved. */
  emptyLog(): void {
    this.#attempt(({ db }) => {
      db.exec("PRAGMA wal_checkpoint(PASSIVE)");
      const [row] = db.prepare("PRAGMA wal_checkpoint(RESTART)").raw().all();
      if (Array.isArray(row) && row[0] !== 0) throw new Error("the log is in use");
    });
  }

  close(): void {
    const file = this.#file;
    this.#file = undefined;
    // The library keeps a closed connection until its statements are garbage-collected, so the log is moved to the file
    // now.
    file?.db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    file?.db.close();
  }

  #chainOptions() {
    const { keys, checkpointEvery } = this.#options;
    return { keys, checkpointEvery, now: Date.now() };
  }

  /** One transaction. The head is read under the lock, so that several processes extend one chain. */
  #write(make: (head: LedgerHead, file: OpenFile) => ChainedBatch): Appended {
    return this.#attempt((file) => {
      file.begin.run([]);
      const head = readHead(file);
      if (head.seq < this.#acknowledgedSeq) throw shortened(this.#options.path, head.seq, this.#acknowledgedSeq);
      const batch = make(head, file);
      for (const { seq, draft, hash } of batch.rows) {
        const { changes } = file.insert.run([seq, ...draft, hash]);
        if (changes !== 1) throw notStored(this.#options.path, seq);
      }
      file.commit.run([]);
      this.#acknowledgedSeq = batch.head.seq;
      return { seqs: batch.seqs, checkpoints: batch.checkpoints, head: batch.head };
    });
  }

  #attempt<T>(act: (file: OpenFile) => T): T {
    try {
      const file = this.#openFile();
      if (fileIdentity(this.#options.path) !== file.identity) throw replaced(this.#options.path);
      return act(file);
    } catch (error) {
      if (!isLocked(error) || this.#file?.db.inTransaction === true) this.abandon();
      throw storeError(error, this.#options.path);
    }
  }

  #openFile(): OpenFile {
    if (this.#file !== undefined) return this.#file;
    const { path, keys, mode = "write" } = this.#options;
    // Creating a new file where one with rows was would hide that these rows are lost.
    if (this.#acknowledgedSeq > 0 && fileIdentity(path) === undefined) throw replaced(path);
    const db = openConnection({ path, mode });
    try {
      claimKey(db, keys, path);
      this.#file = {
        db,
        begin: db.prepare("BEGIN IMMEDIATE"),
        commit: db.prepare("COMMIT"),
        insert: db.prepare(INSERT_SQL),
        selectHead: db.prepare("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1").raw(),
        identity: fileIdentity(path),
      };
      return this.#file;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /**
   * Rolls back first: closing alone would keep the transaction, and its lock, until the statements are
   * garbage-collected.
   */
  abandon(): void {
    const file = this.#file;
    this.#file = undefined;
    if (file === undefined) return;
    try {
      if (file.db.inTransaction) file.db.exec("ROLLBACK");
    } catch {
      // The connection is already broken; the next write opens the file again.
    }
    file.db.close();
  }
}

function readHead({ selectHead }: OpenFile): LedgerHead {
  const row: unknown = selectHead.get([]);
  return Array.isArray(row) ? { seq: Number(row[0]), hash: String(row[1]) } : GENESIS;
}

/** The oldest rows that are all older than `beforeMs`, at most as many as one cut takes. */
function cutRange(db: SqliteConnection, beforeMs: number): { readonly to: number } | undefined {
  const first = Number(firstValue(db, "SELECT min(seq) FROM ledger") ?? 0);
  const last = Number(firstValue(db, "SELECT max(seq) FROM ledger") ?? 0);
  const [row] = db
    .prepare("SELECT seq FROM ledger WHERE seq >= ? AND seq < ? AND time >= ? ORDER BY seq LIMIT 1")
    .raw()
    .all([first, first + CUT_ROWS, beforeMs]);
  const firstYoung = Array.isArray(row) ? Number(row[0]) : first + CUT_ROWS;
  // The newest row stays: the chain continues from it.
  const to = Math.min(firstYoung - 1, last - 1);
  return first === 0 || to < first ? undefined : { to };
}

/** The first process that opens the file records its chain key. Other keys are rejected from then on. */
function claimKey(db: SqliteConnection, keys: LedgerKeys, path: string): void {
  db.prepare("INSERT OR IGNORE INTO ledger_meta (name, value) VALUES ('chain_key_id', ?)").run([keys.chainKeyId]);
  const stored = firstValue(db, "SELECT value FROM ledger_meta WHERE name = 'chain_key_id'");
  if (stored === keys.chainKeyId) return;
  throw new OwlError(
    "store_unavailable",
    `${path} was made with the chain key ${String(stored)}, not with ${keys.chainKeyId}`,
    {
      hint: "Put the keys folder back that belongs to this ledger, or use another data folder.",
      retryable: false,
    },
  );
}

function firstValue(db: SqliteConnection, sql: string): unknown {
  const [row] = db.prepare(sql).raw().all();
  return Array.isArray(row) ? row[0] : undefined;
}

function unchanged(head: LedgerHead): ChainedBatch {
  return { rows: [], seqs: [], checkpoints: [], head };
}

/** A trigger that another program has put into the file can discard a row. */
function notStored(path: string, seq: number): OwlError {
  return new OwlError("store_unavailable", `the ledger ${path} did not store row ${seq}`, {
    hint: "Run `owlclaw mcp-server ledger verify`: it names what was put into the file.",
  });
}

function replaced(path: string): OwlError {
  return new OwlError("store_unavailable", `the ledger ${path} was removed or replaced while the server had it open`, {
    hint: "Put the file back. To begin a new ledger, stop the server first.",
  });
}

function shortened(path: string, seq: number, acknowledgedSeq: number): OwlError {
  return new OwlError(
    "store_unavailable",
    `the ledger ${path} ends with row ${seq}, and row ${acknowledgedSeq} was written`,
    {
      hint: "Rows were removed, or an older copy was put back: put the newest back, or stop the server first.",
    },
  );
}
