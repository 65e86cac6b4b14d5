import { MAX_TIMER_MS } from "../../config/value-rules.ts";
import type { LedgerReader } from "./store.ts";
import type { VerifyProblem } from "./verify.ts";
import type { Finding } from "../../telemetry/health.ts";
import type { Logger } from "../../telemetry/logger.ts";

const HOUR_MS = 3_600_000;
/** The delay of the first check: a server that has just started has other work. */
const FIRST_MS = 60_000;

export interface LedgerCheckOptions {
  readonly ledger: { readonly reader: Pick<LedgerReader, "verify"> };
  readonly everyHours: number;
  readonly logger: Logger;
}

/** Verifies the whole ledger periodically, in parallel with calls, and keeps the result. */
export class LedgerCheck {
  readonly #options: LedgerCheckOptions;
  #finding: Finding = { status: "ok", message: "the ledger has not been verified since the start" };
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: LedgerCheckOptions) {
    this.#options = options;
  }

  get finding(): Finding {
    return this.#finding;
  }

  start(): void {
    this.#plan(Math.min(FIRST_MS, this.#everyMs));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  get #everyMs(): number {
    return this.#options.everyHours * HOUR_MS;
  }

  #plan(afterMs: number): void {
    if (this.#isClosed) return;
    const waitMs = Math.min(afterMs, MAX_TIMER_MS);
    this.#timer = setTimeout(() => this.#due(afterMs - waitMs), waitMs).unref();
  }

  /** Long waits are split: a timer cannot wait for a year. */
  #due(leftMs: number): void {
    if (leftMs > 0) this.#plan(leftMs);
    else void this.#verify().finally(() => this.#plan(this.#everyMs));
  }

  async #verify(): Promise<void> {
    const { ledger, logger } = this.#options;
    try {
      const { isIntact, rows, problems, problemCount } = await ledger.reader.verify({});
      const [first] = problems;
      if (!isIntact && this.#finding.status === "ok")
        logger.error("the ledger is not intact", { problems: problemCount, first: first && describe(first) });
      this.#finding = isIntact
        ? { status: "ok", message: `all ${rows} rows were verified at ${new Date().toISOString()}` }
        : {
            status: "down",
            message: `the ledger is not intact (${first === undefined ? "unknown" : describe(first)}); run \`owlclaw mcp-server ledger verify\``,
          };
    } catch (error) {
      if (this.#isClosed) return;
      // The store's own health check reports that it cannot be read.
      logger.warning("the ledger could not be verified", { error });
    }
  }
}

function describe({ seq, fault }: VerifyProblem): string {
  return seq === 0 ? fault : `row ${seq}: ${fault}`;
}
