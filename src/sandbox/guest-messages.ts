import { randomBytes } from "node:crypto";
import {
  Message,
  type DataCallback,
  type MessageReader,
  type MessageWriter,
  type NotificationMessage,
} from "vscode-jsonrpc/node";
import { z } from "zod";
import { MalformedFrame } from "./frame-limit.ts";
import { type GuestOutput, OUTPUT_METHOD } from "./guest-methods.ts";
import { outputSchema } from "./guest-schemas.ts";

type Id = string | number;

const output = z.strictObject({ jsonrpc: z.literal("2.0"), method: z.literal(OUTPUT_METHOD), params: outputSchema });

const answer = z.strictObject({
  jsonrpc: z.literal("2.0"),
  id: z.string(),
  result: z.unknown().optional(),
  error: z.strictObject({ code: z.int(), message: z.string(), data: z.unknown().optional() }).optional(),
});

export interface GuestMessagesOptions {
  /** At once: the library would keep what it has not come to, without end. */
  readonly onOutput: (output: GuestOutput) => void;
  readonly onMalformed: (error: MalformedFrame) => void;
}

/**
 * The library numbers its requests 1, 2, 3. On the wire each has a random id in place of its number, so that nothing
 * inside can answer a request it has not seen. Code that reads the guest's memory can: it spoils the answers of its own
 * sandbox, which its owner could do anyway, and reaches no other.
 */
export class GuestMessages {
  readonly #wireIds = new Map<Id, string>();
  readonly #ownIds = new Map<string, Id>();
  readonly #options: GuestMessagesOptions;

  constructor(options: GuestMessagesOptions) {
    this.#options = options;
  }

  writer(inner: MessageWriter): MessageWriter {
    return {
      onError: inner.onError,
      onClose: inner.onClose,
      write: (message) => inner.write(this.#toWire(message)),
      end: () => inner.end(),
      dispose: () => inner.dispose(),
    };
  }

  /** Passes on answers to open requests, and gives output to who listens; anything else is reported. */
  reader(inner: MessageReader): MessageReader {
    const listen = (callback: DataCallback) =>
      inner.listen((message) => {
        try {
          if (Message.isNotification(message)) this.#options.onOutput(readOutput(message));
          else callback(this.#fromWire(message));
        } catch (error) {
          this.#options.onMalformed(error instanceof MalformedFrame ? error : new MalformedFrame("unreadable"));
        }
      });
    return {
      onError: inner.onError,
      onClose: inner.onClose,
      onPartialMessage: inner.onPartialMessage,
      listen,
      dispose: () => inner.dispose(),
    };
  }

  #toWire(message: Message): Message {
    if (Message.isRequest(message) && message.id !== null) {
      const wireId = randomBytes(15).toString("base64url");
      this.#wireIds.set(message.id, wireId);
      this.#ownIds.set(wireId, message.id);
      const request = { ...message, id: wireId };
      return request;
    }
    if (!Message.isNotification(message) || message.method !== "$/cancelRequest") return message;
    const params = { id: this.#wireIds.get(cancelledId(message.params) ?? "") };
    const cancellation = { ...message, params };
    return cancellation;
  }

  #fromWire(message: Message): Message {
    const parsed = answer.safeParse(message);
    if (!parsed.success || !Message.isResponse(message)) throw new MalformedFrame("not an answer");
    const { id: wireId } = parsed.data;
    const ownId = this.#ownIds.get(wireId);
    if (ownId === undefined) throw new MalformedFrame("an answer to nothing that was asked");
    this.#ownIds.delete(wireId);
    this.#wireIds.delete(ownId);
    const response = { ...parsed.data, id: ownId };
    return response;
  }
}

function readOutput(message: NotificationMessage): GuestOutput {
  if (message.method !== OUTPUT_METHOD) throw new MalformedFrame("a notification that no guest sends");
  const parsed = output.safeParse(message);
  if (parsed.success) return parsed.data.params;
  throw new MalformedFrame("an output that is not as agreed");
}

function cancelledId(params: unknown): Id | undefined {
  if (typeof params !== "object" || params === null || !("id" in params)) return undefined;
  const { id } = params;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
