import { OwlError, toOwlError } from "../errors/owl-error.ts";
import { type ForwardMessage, readMessage, writeError, writeValue } from "./forward-message.ts";
import { type Envelope, type ForwardSeal, TOLERANCE_MS } from "./forward-seal.ts";
import { UsedNonces } from "./used-nonces.ts";

export interface ForwardDoorOptions {
  readonly seal: ForwardSeal;
  readonly serverId: string;
  /** Runs it for its principal, and for nobody's more. */
  readonly run: (message: ForwardMessage, signal: AbortSignal) => Promise<unknown>;
}

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

  /** The sealed answer, whatever came of it. @throws OwlError when the body is not what its envelope says. */
  async serve(envelope: Envelope, sealed: Buffer, signal: AbortSignal): Promise<Buffer> {
    const { seal, run } = this.#options;
    const text = seal.open(envelope, "call", sealed);
    try {
      return seal.seal(envelope, "answer", writeValue(await run(toMessage(text), signal)));
    } catch (thrown) {
      return seal.seal(envelope, "answer", writeError(toOwlError(thrown)));
    }
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
