import { OwlError, toOwlError } from "../errors/owl-error.ts";
import {
  type ForwardMessage,
  type ForwardNews,
  readMessage,
  writeError,
  writeNews,
  writeValue,
} from "./forward-message.ts";
import { PieceWriter } from "./forward-pieces.ts";
import { type Envelope, type ForwardSeal, TOLERANCE_MS } from "./forward-seal.ts";
import { UsedNonces } from "./used-nonces.ts";

/** What a call that is run for another server needs of its line. */
export interface ForwardLine {
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
export interface AnswerLine {
  /** Aborts when it hangs up. */
  readonly signal: AbortSignal;
  /** How much it has not taken yet. */
  readonly waitingBytes: number;
  readonly release?: () => void;
  write(piece: Buffer): void;
}

export interface ForwardDoorOptions {
  readonly seal: ForwardSeal;
  readonly serverId: string;
  /** Runs it for its principal, and for nobody's more. */
  readonly run: (message: ForwardMessage, line: ForwardLine) => Promise<unknown>;
}

const MAX_WAITING_BYTES = 1024 * 1024;

/** Takes calls of other servers of the cluster, and of nobody else. */
export class ForwardDoor {
  readonly #options: ForwardDoorOptions;
  readonly #used = new UsedNonces(2 * TOLERANCE_MS);

  constructor(options: ForwardDoorOptions) {
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
  async serve(envelope: Envelope, sealed: Buffer, line: AnswerLine): Promise<void> {
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
