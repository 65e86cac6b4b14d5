import { randomBytes } from "node:crypto";
import { Message, type DataCallback, type MessageReader, type MessageWriter } from "vscode-jsonrpc/node";
import { MalformedFrame } from "./frame-limit.ts";
import { OUTPUT_METHOD } from "./guest-methods.ts";

type Id = string | number;

/**
 * The library numbers its requests 1, 2, 3. On the wire each has a random id in place of its number, so that nothing
 * inside can answer a request it has not seen. Code that reads the guest's memory can: it spoils the answers of its own
 * sandbox, which its owner could do anyway, and reaches no other.
 */
export class GuestMessages {
  readonly #wireIds = new Map<Id, string>();
  readonly #ownIds = new Map<string, Id>();

  writer(inner: MessageWriter): MessageWriter {
    return {
      onError: inner.onError,
      onClose: inner.onClose,
      write: (message) => inner.write(this.#toWire(message)),
      end: () => inner.end(),
      dispose: () => inner.dispose(),
    };
  }

  /** Passes on answers to open requests and output, nothing else; the rest is reported, and reading ends. */
  reader(inner: MessageReader, onMalformed: (error: MalformedFrame) => void): MessageReader {
    const listen = (callback: DataCallback) =>
      inner.listen((message) => {
        let known: Message;
        try {
          known = this.#fromWire(message);
        } catch (error) {
          onMalformed(error instanceof MalformedFrame ? error : new MalformedFrame("unreadable"));
          return;
        }
        callback(known);
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
    if (Message.isNotification(message)) {
      if (message.method === OUTPUT_METHOD) return message;
      throw new MalformedFrame("a notification that no guest sends");
    }
    if (!Message.isResponse(message) || Message.isRequest(message)) throw new MalformedFrame("not an answer");
    const wireId = message.id;
    const ownId = typeof wireId === "string" ? this.#ownIds.get(wireId) : undefined;
    if (typeof wireId !== "string" || ownId === undefined)
      throw new MalformedFrame("an answer to nothing that was asked");
    this.#ownIds.delete(wireId);
    this.#wireIds.delete(ownId);
    const response = { ...message, id: ownId };
    return response;
  }
}

function cancelledId(params: unknown): Id | undefined {
  if (typeof params !== "object" || params === null || !("id" in params)) return undefined;
  const { id } = params;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
