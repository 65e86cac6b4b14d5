import { OwlError, toOwlError } from "../errors/owl-error.ts";
import {
  type ForwardMessage,
  type ForwardNews,
  readMessage,
  writeError,
  writeNews,
  writeValue,
} from "./forward-message.ts";
import { PieceWriter } from "./forward-connection.ts";
import { type Envelope, type ForwardSeal, TOLERANCE_MS } from "./forward-seal.ts";

/** What a call that is run for another server needs of its line. */
export interface ForwardedRequest {
  readonly signal: AbortSignal;
  readonly tell: (news: ForwardNews) => void;
  /** How much the other server has not taken yet. */
  readonly waitingBytes: () => number;
  /** Says that shutdown need not wait for it: what it holds open is a stream. */
  readonly release: () => void;
  /** What goes on after the answer, and shutdown waits for. */
  readonly linger: (work: Promise<unknown>) => void;
}

/** The way back to the other server. */
export interface AnswerStream {
  /** Aborts when it hangs up. */
  readonly signal: AbortSignal;
  /** How much it has not taken yet. */
  readonly waitingBytes: number;
  readonly release?: () => void;
  write(piece: Buffer): void;
}

export interface ForwardReceiverOptions {
  readonly seal: ForwardSeal;
  readonly serverId: string;
  /** Runs it for its principal, and for nobody's more. */
  readonly run: (message: ForwardMessage, line: ForwardedRequest) => Promise<unknown>;
}

const MAX_WAITING_BYTES = 1024 * 1024;

/** Takes calls of other servers of the cluster, and of nobody else. */
export class ForwardReceiver {
  readonly #options: ForwardReceiverOptions;
  readonly #used = new UsedNonces(2 * TOLERANCE_MS);

  constructor(options: ForwardReceiverOptions) {
    this.#options = options;
  }

  /** Before any of the body is read. @throws OwlError */
  admit(header: string | undefined): Envelope {
    const { seal, serverId } = this.#options;
    const envelope = seal.read(header, serverId);
    this.#used.use(envelope.nonce, Date.now());
    return envelope;
  }

  /**
   * Writes what the call tells and how it ended, sealed, whatever came of it.
   * @throws OwlError when the body is not what its envelope says.
   */
  async serve(envelope: Envelope, sealed: Buffer, line: AnswerStream): Promise<void> {
    const { seal, run } = this.#options;
    const text = seal.open(envelope, "call", sealed);
    const pieces = new PieceWriter(seal, envelope);
    const tell = (news: ForwardNews): void => {
      // Words wait for nobody; what must be paid, and what is the answer, is always told.
      const isWord = news.news === "progress" || news.news === "log";
      if (!isWord || line.waitingBytes < MAX_WAITING_BYTES) line.write(pieces.write(writeNews(news)));
    };
    const lingering: Promise<unknown>[] = [];
    let outcome: string;
    try {
      const value = await run(toMessage(text), {
        signal: line.signal,
        tell,
        waitingBytes: () => line.waitingBytes,
        release: () => line.release?.(),
        linger: (work) => void lingering.push(work),
      });
      outcome = writeValue(value);
    } catch (thrown) {
      outcome = writeError(toOwlError(thrown));
    }
    line.write(pieces.write(outcome));
    await Promise.allSettled(lingering);
  }
}

function toMessage(text: string): ForwardMessage {
  try {
    return readMessage(text);
  } catch (cause) {
    throw new OwlError("invalid_request", "a server of another version forwarded a call that this one cannot read", {
      hint: "run the same version on all servers",
      cause,
    });
  }
}

const MAX_NONCES = 200_000;

/** What was used once is not used again while anybody would still accept it. */
export class UsedNonces {
  readonly #lifeMs: number;
  readonly #until = new Map<string, number>();

  constructor(lifeMs: number) {
    this.#lifeMs = lifeMs;
  }

  /** @throws OwlError when it was used before. */
  use(nonce: string, nowMs: number): void {
    this.#forgetOld(nowMs);
    if (this.#until.has(nonce))
      throw new OwlError("forbidden", "this forwarded call was made before and is not made again", {
        facts: { reason: "not_forwarded" },
        hint: "send the call itself again",
      });
    if (this.#until.size >= MAX_NONCES)
      throw new OwlError("overloaded", "too many calls were forwarded to this server in a minute");
    this.#until.set(nonce, nowMs + this.#lifeMs);
  }

  /** They stand in the order in which they came. */
  #forgetOld(nowMs: number): void {
    for (const [nonce, untilMs] of this.#until) {
      if (untilMs > nowMs) return;
      this.#until.delete(nonce);
    }
  }
}
