import { isOwlError } from "../../errors/owl-error.ts";
import { linkHash, GENESIS } from "./chain.ts";
import { type Cut, readCheckpoint } from "./checkpoint.ts";
import type { LedgerKeys } from "./keys.ts";
import type { LedgerHead } from "./ledger.ts";
import { describeLoss, type Loss, readAcknowledgement, readLoss } from "./loss.ts";
import { COLUMNS } from "./row.ts";

export interface VerifyOptions {
  /** A head that was published earlier: the ledger must still hold it. */
  readonly head?: LedgerHead;
  /** The newest signed head that the key folder holds. */
  readonly anchor?: LedgerHead;
}

export type VerifyFault = "changed" | "missing" | "loss" | "unreadable" | "checkpoint" | "head" | "key" | "store";

export interface VerifyProblem {
  /** The row, or the first of several. 0: the ledger as a whole. */
  readonly seq: number;
  readonly fault: VerifyFault;
  readonly detail: string;
}

export interface VerifyReport {
  readonly isIntact: boolean;
  readonly rows: number;
  readonly firstSeq: number;
  readonly head: LedgerHead;
  readonly checkpoints: number;
  /** The rows that retention has removed, according to its signed record. */
  readonly removed: { readonly from: number; readonly to: number } | undefined;
  /** Losses that an operator has acknowledged by name. */
  readonly acknowledged: readonly { readonly seq: number; readonly by: string }[];
  /** At most `MAX_PROBLEMS` of them, in the order of the rows. */
  readonly problems: readonly VerifyProblem[];
  readonly problemCount: number;
}

/** A row as it was hashed. */
export interface ChainRecord {
  readonly seq: number;
  readonly hash: string;
  /** As `encodeRow` makes it. */
  readonly encoded: string;
}

/** What verification needs of a store. */
export interface ChainSource {
  /** The next rows after this one, in order. */
  records(afterSeq: number, limit: number): Promise<readonly ChainRecord[]>;
  /** The newest signed cut. */
  latestCut(): Promise<Cut | undefined>;
  /** The id of the chain key that the store was made with. */
  chainKeyId(): Promise<string | undefined>;
  /** Rows before the first, which no server writes. */
  strayRows(): Promise<number>;
  /** Damage that the database itself finds in its files, and objects that others have put into it. */
  integrityProblems(): Promise<readonly string[]>;
}

export const MAX_PROBLEMS = 100;
const PAGE_ROWS = 2000;
const KIND_AT = COLUMNS.indexOf("kind");
const RESULT_AT = COLUMNS.indexOf("result");
/** Avoids parsing the rows that cannot be of these kinds. */
const OWN_KINDS = /"(?:checkpoint|loss|acknowledgement)"/;

/** Reads the whole chain in pages: memory use stays constant, and writers are never blocked. */
export async function verifyChain(
  source: ChainSource,
  keys: LedgerKeys,
  options: VerifyOptions,
): Promise<VerifyReport> {
  const storedKeyId = await source.chainKeyId();
  const walk = new ChainWalk(source, keys, options);
  if (storedKeyId !== undefined && storedKeyId !== keys.chainKeyId) {
    walk.report({
      seq: 0,
      fault: "key",
      detail: `the ledger was made with the chain key ${storedKeyId}, and this is the key ${keys.chainKeyId}`,
    });
  } else {
    await walk.run();
    const stray = await source.strayRows();
    if (stray > 0)
      walk.report({ seq: 0, fault: "store", detail: `${stray} rows stand before row 1: no server wrote them` });
    for (const detail of await source.integrityProblems()) walk.report({ seq: 0, fault: "store", detail });
  }
  return walk.result();
}

class ChainWalk {
  readonly #source: ChainSource;
  readonly #keys: LedgerKeys;
  readonly #awaited: readonly (readonly [string, LedgerHead])[];
  readonly #problems: VerifyProblem[] = [];
  #problemCount = 0;
  #head: LedgerHead = GENESIS;
  #firstSeq = 0;
  #rows = 0;
  #checkpoints = 0;
  #removed: Cut | undefined;
  readonly #losses = new Map<number, Loss>();
  readonly #acknowledged: { readonly seq: number; readonly by: string }[] = [];
  /** False after a gap: the previous hash is not known, so the hash of the next row cannot be checked. */
  #isPreviousKnown = true;

  constructor(source: ChainSource, keys: LedgerKeys, { head, anchor }: VerifyOptions) {
    this.#source = source;
    this.#keys = keys;
    this.#awaited = [
      ...(head === undefined ? [] : [["the published head", head] as const]),
      ...(anchor === undefined ? [] : [["the head in the key folder", anchor] as const]),
    ];
  }

  report(problem: VerifyProblem): void {
    this.#problemCount += 1;
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push(problem);
  }

  result(): VerifyReport {
    const removed = this.#removed;
    return {
      isIntact: this.#problemCount === 0,
      rows: this.#rows,
      firstSeq: this.#firstSeq,
      head: this.#head,
      checkpoints: this.#checkpoints,
      removed: removed === undefined ? undefined : { from: removed.from, to: removed.to },
      acknowledged: this.#acknowledged,
      problems: this.#problems,
      problemCount: this.#problemCount,
    };
  }

  async run(): Promise<void> {
    for (;;) {
      const records = await this.#readPage();
      if (records === undefined) break;
      for (const record of records) {
        if (record.seq !== this.#head.seq + 1) await this.#crossGap(record);
        this.#check(record);
      }
    }
    for (const [seq, loss] of this.#losses) this.report({ seq, fault: "loss", detail: describeLoss(loss, seq) });
    for (const [what, head] of this.#awaited) {
      if (head.seq <= this.#head.seq) continue;
      this.report({
        seq: this.#head.seq + 1,
        fault: "head",
        detail: `the tail is cut off: ${what} is row ${head.seq}, and the ledger ends with row ${this.#head.seq}`,
      });
    }
  }

  /** The next rows; `undefined` at the end. A row that cannot be read is reported and skipped. */
  async #readPage(): Promise<readonly ChainRecord[] | undefined> {
    try {
      const records = await this.#source.records(this.#head.seq, PAGE_ROWS);
      return records.length === 0 ? undefined : records;
    } catch (error) {
      throwIfClosed(error);
      if (this.#problemCount > MAX_PROBLEMS) return undefined;
      return this.#readOne(error);
    }
  }

  async #readOne(pageError: unknown): Promise<readonly ChainRecord[] | undefined> {
    try {
      const records = await this.#source.records(this.#head.seq, 1);
      // The row that cannot be read is later in the page.
      return records.length === 0 ? undefined : records;
    } catch (error) {
      throwIfClosed(error);
      const seq = this.#head.seq + 1;
      const reason = pageError instanceof Error ? pageError.message : String(pageError);
      this.report({ seq, fault: "unreadable", detail: `row ${seq} cannot be read: ${reason}` });
      this.#head = { seq, hash: "" };
      this.#isPreviousKnown = false;
      return [];
    }
  }

  /** Handles missing rows before this one: a signed cut explains them, or they are reported. */
  async #crossGap({ seq }: ChainRecord): Promise<void> {
    const cut = await this.#source.latestCut();
    const first = this.#head.seq + 1;
    if (cut !== undefined && cut.to === seq - 1 && cut.from <= first) {
      this.#removed = cut;
      this.#head = { seq: cut.to, hash: cut.hash };
      this.#isPreviousKnown = true;
      this.#compareAwaited(cut.to, cut.hash);
      return;
    }
    const which = first === seq - 1 ? `row ${first} is` : `rows ${first} to ${seq - 1} are`;
    this.report({ seq: first, fault: "missing", detail: `${which} missing` });
    this.#isPreviousKnown = false;
  }

  #check({ seq, hash, encoded }: ChainRecord): void {
    if (this.#isPreviousKnown && linkHash(this.#keys.chainKey, this.#head.hash, encoded) !== hash) {
      const detail = `row ${seq} does not fit the chain: it, or the hash of the row before, was changed`;
      this.report({ seq, fault: "changed", detail });
    }
    if (OWN_KINDS.test(encoded)) this.#checkOwn(seq, encoded);
    this.#compareAwaited(seq, hash);
    if (this.#firstSeq === 0) this.#firstSeq = seq;
    this.#rows += 1;
    this.#head = { seq, hash };
    this.#isPreviousKnown = true;
  }

  /** Checks the rows that the ledger wrote about itself. */
  #checkOwn(seq: number, encoded: string): void {
    const values: unknown = JSON.parse(encoded);
    if (!Array.isArray(values)) return;
    const result = String(values[RESULT_AT]);
    if (values[KIND_AT] === "checkpoint") this.#checkCheckpoint(seq, result);
    else if (values[KIND_AT] === "loss") this.#noteLoss(seq, result);
    else if (values[KIND_AT] === "acknowledgement") this.#acknowledge(result);
  }

  #noteLoss(seq: number, result: string): void {
    const loss = readLoss(result);
    if (loss !== undefined) this.#losses.set(seq, loss);
    else this.report({ seq, fault: "unreadable", detail: `row ${seq} does not say what was lost` });
  }

  #acknowledge(result: string): void {
    const acknowledgement = readAcknowledgement(result);
    for (const seq of this.#losses.keys()) {
      if (acknowledgement === undefined || seq > acknowledgement.upTo) continue;
      this.#losses.delete(seq);
      this.#acknowledged.push({ seq, by: acknowledgement.by });
    }
  }

  #checkCheckpoint(seq: number, result: string): void {
    this.#checkpoints += 1;
    const checkpoint = readCheckpoint(this.#keys, result);
    if (checkpoint === undefined) {
      this.report({ seq, fault: "checkpoint", detail: `the signature in row ${seq} is not by this signing key` });
    } else if (
      this.#isPreviousKnown &&
      (checkpoint.seq !== this.#head.seq || checkpoint.hash !== this.#head.hash) // The row before is the one it signs.
    ) {
      this.report({ seq, fault: "checkpoint", detail: `row ${seq} signs another chain than the one before it` });
    }
  }

  #compareAwaited(seq: number, hash: string): void {
    for (const [what, head] of this.#awaited) {
      if (head.seq !== seq || head.hash === hash) continue;
      this.report({ seq, fault: "head", detail: `row ${seq} has another hash than ${what}: the chain was rewritten` });
    }
  }
}

/** Closing the ledger during the verification says nothing about its rows. */
function throwIfClosed(error: unknown): void {
  if (isOwlError(error) && error.kind === "shutting_down") throw error;
}
