import { type KeyObject, hash } from "node:crypto";
import { signCheckpoint, type Checkpoint } from "./checkpoint.ts";
import type { LedgerKeys } from "./keys.ts";
import type { LedgerHead } from "./ledger.ts";
import { type Draft, systemDraft, type Value } from "./row.ts";

/** The head of an empty ledger. */
export const GENESIS: LedgerHead = { seq: 0, hash: "0".repeat(64) };

/** A draft with its number and hash in the chain. */
export interface ChainedRow {
  readonly seq: number;
  readonly draft: Draft;
  readonly hash: string;
}

export interface ChainedBatch {
  readonly rows: readonly ChainedRow[];
  /** The row number of each draft, in their order. */
  readonly seqs: readonly number[];
  readonly checkpoints: readonly Checkpoint[];
  readonly head: LedgerHead;
}

export interface ChainOptions {
  readonly keys: LedgerKeys;
  /** Every row whose number this divides is a checkpoint. */
  readonly checkpointEvery: number;
  readonly now: number;
}

/** The bytes that are hashed: the row as a JSON array, in the order of the columns. */
export function encodeRow(seq: number, draft: readonly Value[]): string {
  return JSON.stringify([seq, ...draft]);
}

/** HMAC-SHA256 over the previous hash and the row: without the key, no valid row can be made. */
export function linkHash(key: KeyObject, previousHash: string, encodedRow: string): string {
  return macOf(key).of(previousHash, "\n", encodedRow);
}

const macs = new WeakMap<KeyObject, ChainMac>();

function macOf(key: KeyObject): ChainMac {
  let mac = macs.get(key);
  if (mac === undefined) macs.set(key, (mac = new ChainMac(key)));
  return mac;
}

/** Appends drafts to the head, with a checkpoint wherever one is due. */
export function chainDrafts(head: LedgerHead, drafts: readonly Draft[], options: ChainOptions): ChainedBatch {
  const rows: ChainedRow[] = [];
  const seqs: number[] = [];
  const checkpoints: Checkpoint[] = [];
  let { seq, hash } = head;
  const add = (draft: Draft): void => {
    seq += 1;
    hash = linkHash(options.keys.chainKey, hash, encodeRow(seq, draft));
    rows.push({ seq, draft, hash });
  };
  for (const draft of drafts) {
    if ((seq + 1) % options.checkpointEvery === 0) {
      const checkpoint = signCheckpoint(options.keys, { seq, hash, time: options.now });
      add(systemDraft("checkpoint", options.now, checkpoint));
      checkpoints.push(checkpoint);
    }
    add(draft);
    seqs.push(seq);
  }
  return { rows, seqs, checkpoints, head: { seq, hash } };
}

/** A signed head as the next row. */
export function chainCheckpoint(head: LedgerHead, { keys, now }: ChainOptions): ChainedBatch {
  const checkpoint = signCheckpoint(keys, { ...head, time: now });
  const batch = chainDrafts(head, [systemDraft("checkpoint", now, checkpoint)], {
    keys,
    now,
    checkpointEvery: Number.POSITIVE_INFINITY,
  });
  return { ...batch, checkpoints: [checkpoint] };
}

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** A code unit of a JavaScript string takes at most three bytes in UTF-8. */
const BYTES_PER_CHAR = 3;

/**
 * HMAC-SHA256 (RFC 2104) under one key, as two plain digests. Node sets up a keyed digest anew for each text, which costs
 * three times as much as hashing a row.
 */
export class ChainMac {
  /** The key block of the first digest, followed by space for the text. */
  #inner: Buffer;
  /** The key block of the second digest, followed by the result of the first. */
  readonly #outer: Buffer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, 0x5c);

  constructor(key: KeyObject) {
    const secret = key.export();
    if (secret.length > BLOCK_BYTES) throw new RangeError("the chain's key is longer than a block");
    this.#inner = Buffer.alloc(BLOCK_BYTES, 0x36);
    for (const [index, byte] of secret.entries()) {
      this.#inner[index] = byte ^ 0x36;
      this.#outer[index] = byte ^ 0x5c;
    }
  }

  /** The MAC of the concatenated texts, in hexadecimal. */
  of(...texts: readonly string[]): string {
    let end = BLOCK_BYTES;
    for (const text of texts) {
      this.#makeRoom(end + text.length * BYTES_PER_CHAR);
      end += this.#inner.write(text, end, "utf8");
    }
    // A hexadecimal string is created faster than a buffer.
    const first = hash("sha256", this.#inner.subarray(0, end), "hex");
    this.#outer.write(first, BLOCK_BYTES, "hex");
    return hash("sha256", this.#outer, "hex");
  }

  #makeRoom(bytes: number): void {
    if (this.#inner.length < bytes) this.#inner = Buffer.concat([this.#inner], bytes * 2);
  }
}
