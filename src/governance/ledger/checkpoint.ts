import { sign, verify } from "node:crypto";
import type { LedgerKeys } from "./keys.ts";
import type { LedgerHead } from "./ledger.ts";
import { setImmediate } from "node:timers/promises";
import type { Logger } from "../../telemetry/logger.ts";
import type { LedgerStore } from "./store.ts";

interface Signed {
  readonly time: number;
  /** The id of the key that signed. */
  readonly key: string;
  readonly signature: string;
}

/** A signed statement: at this time the chain ended here. */
export interface Checkpoint extends LedgerHead, Signed {}

/** A signed statement: these rows were removed on purpose. */
export interface Cut extends Signed {
  /** The first and the last row that were removed. */
  readonly from: number;
  readonly to: number;
  /** Hash of the last removed row: the chain continues from it. */
  readonly hash: string;
  /** Rows older than this were removed. */
  readonly before: number;
}

export function signCheckpoint(keys: LedgerKeys, statement: LedgerHead & { readonly time: number }): Checkpoint {
  const fields = { seq: statement.seq, hash: statement.hash, time: statement.time, key: keys.signingKeyId };
  return { ...fields, signature: signText(keys, checkpointText(fields)) };
}

export function signCut(keys: LedgerKeys, statement: Omit<Cut, "key" | "signature">): Cut {
  const fields = { ...statement, key: keys.signingKeyId };
  return { ...fields, signature: signText(keys, cutText(fields)) };
}

/** The statement in a checkpoint row; `undefined` when it was not signed by these keys. */
export function readCheckpoint(keys: LedgerKeys, text: string): Checkpoint | undefined {
  const { number, string } = fieldsOf(text);
  const fields = { seq: number("seq"), hash: string("hash"), time: number("time"), key: string("key") };
  const signature = string("signature");
  return isSigned(keys, checkpointText(fields), signature) ? { ...fields, signature } : undefined;
}

export function readCut(keys: LedgerKeys, text: string): Cut | undefined {
  const { number, string } = fieldsOf(text);
  const range = { from: number("from"), to: number("to"), hash: string("hash"), before: number("before") };
  const fields = { ...range, time: number("time"), key: string("key") };
  const signature = string("signature");
  return isSigned(keys, cutText(fields), signature) ? { ...fields, signature } : undefined;
}

/** A head as text: `1234:9f86d081…`. */
export function formatHead(head: LedgerHead): string {
  return `${head.seq}:${head.hash}`;
}

export function parseHead(text: string): LedgerHead | undefined {
  const match = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim().toLowerCase());
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  return { seq: Number(match[1]), hash: match[2] };
}

function checkpointText({ seq, hash, time, key }: Omit<Checkpoint, "signature">): string {
  return ["owlclaw-ledger-checkpoint-1", seq, hash, time, key].join("\n");
}

function cutText({ from, to, hash, before, time, key }: Omit<Cut, "signature">): string {
  return ["owlclaw-ledger-cut-1", from, to, hash, before, time, key].join("\n");
}

function signText(keys: LedgerKeys, text: string): string {
  return sign(null, Buffer.from(text), keys.signingKey).toString("base64");
}

function isSigned(keys: LedgerKeys, text: string, signature: string): boolean {
  return verify(null, Buffer.from(text), keys.publicKey, Buffer.from(signature, "base64"));
}

interface Fields {
  readonly number: (name: string) => number;
  readonly string: (name: string) => string;
}

/** Missing fields are read as NaN or an empty text: the signature then does not match. */
function fieldsOf(text: string): Fields {
  const parsed = parse(text);
  const field = (name: string): unknown =>
    typeof parsed === "object" && parsed !== null ? Reflect.get(parsed, name) : undefined;
  return {
    number: (name) => {
      const value = field(name);
      return typeof value === "number" ? value : Number.NaN;
    },
    string: (name) => {
      const value = field(name);
      return typeof value === "string" ? value : "";
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON, so not a statement: the caller decides what that means.
    return undefined;
  }
}

const DAY_MS = 86_400_000;
const CHECK_EVERY_MS = 3_600_000;

export interface RetentionOptions {
  readonly store: Pick<LedgerStore, "cut">;
  readonly retentionDays: number;
  /** Rows from this time on are kept: a loss that no operator has acknowledged is not removed. */
  readonly keepFromMs: () => number | undefined;
  readonly logger: Logger;
}

/** Removes old rows, now and every hour, in small batches, so that calls do not wait for it. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void>;
  #isClosed = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#running = this.#run();
    this.#timer = setInterval(() => {
      this.#running = this.#running.then(() => this.#run());
    }, CHECK_EVERY_MS).unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #run(): Promise<void> {
    const { store, retentionDays, keepFromMs, logger } = this.#options;
    const beforeMs = Math.min(Date.now() - retentionDays * DAY_MS, keepFromMs() ?? Number.POSITIVE_INFINITY);
    try {
      while (!this.#isClosed) {
        const cut = await store.cut(beforeMs);
        if (cut === undefined) return;
        logger.info("old rows of the ledger were removed", { up_to: cut.to, before: new Date(beforeMs).toISOString() });
        await setImmediate();
      }
    } catch (error) {
      logger.error("old rows of the ledger could not be removed", { error });
    }
  }
}
