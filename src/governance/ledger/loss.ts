import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { formatHead } from "./checkpoint.ts";
import { type Draft, systemDraft } from "./row.ts";

const headSchema = z.strictObject({ seq: z.int().nonnegative(), hash: z.string() });

/** The content of a loss row. The chain authenticates it, as it does every row. */
const lossSchema = z.strictObject({
  /** The newest signed head that this server knew. */
  known: headSchema,
  /** Where the ledger ended when the server started. */
  found: headSchema,
  /** When the known head was signed: the rows up to it existed then. */
  signedAt: z.number(),
});

export type Loss = z.infer<typeof lossSchema>;

const acknowledgementSchema = z.strictObject({
  /** Every loss up to this row is acknowledged. */
  upTo: z.int().positive(),
  by: z.string(),
});

export type Acknowledgement = z.infer<typeof acknowledgementSchema>;

/** The row with which a ledger continues after it has lost rows. */
export function lossDraft(loss: Loss): Draft {
  return systemDraft("loss", Date.now(), loss);
}

export function acknowledgementDraft(acknowledgement: Acknowledgement): Draft {
  return systemDraft("acknowledgement", Date.now(), acknowledgement);
}

export function readLoss(text: string): Loss | undefined {
  return lossSchema.safeParse(parsed(text)).data;
}

export function readAcknowledgement(text: string): Acknowledgement | undefined {
  return acknowledgementSchema.safeParse(parsed(text)).data;
}

export function describeLoss({ known, found, signedAt }: Loss, seq: number): string {
  const signed = new Date(signedAt).toISOString();
  const what =
    found.seq < known.seq
      ? `rows ${found.seq + 1} to ${known.seq} were lost`
      : `row ${known.seq} was replaced by another one, and rows before it may have been`;
  return `${what}: the head ${formatHead(known)} was signed at ${signed}, and the ledger that the server found did not have it. Acknowledge it with \`owlclaw mcp-server ledger acknowledge ${seq} --by NAME\``;
}

const MARK_FILE = "ledger-loss.json";
const markSchema = z.strictObject({ seq: z.int().positive(), time: z.number() });

type Mark = z.infer<typeof markSchema>;

/**
 * The newest loss that no operator has acknowledged, stored in the folder of the keys: restoring an old ledger over
 * this one does not restore that folder. Verification reads the rows of the chain and not this file.
 */
export class OpenLoss {
  readonly #path: string;

  constructor(keyFolder: string) {
    this.#path = join(keyFolder, MARK_FILE);
  }

  read(): Mark | undefined {
    if (!existsSync(this.#path)) return undefined;
    // A file that cannot be read also counts as a loss: only an acknowledgement removes it.
    return markSchema.safeParse(parsed(readFileSync(this.#path, "utf8"))).data ?? { seq: 1, time: 0 };
  }

  mark(mark: Mark): void {
    const draft = `${this.#path}.${process.pid}`;
    writeFileSync(draft, `${JSON.stringify(mark)}\n`, { mode: 0o600 });
    renameSync(draft, this.#path);
  }

  clear(upTo: number): void {
    if ((this.read()?.seq ?? Number.POSITIVE_INFINITY) <= upTo) rmSync(this.#path, { force: true });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema rejects it.
    return undefined;
  }
}
