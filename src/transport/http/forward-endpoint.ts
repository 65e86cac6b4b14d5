import type { IncomingMessage, ServerResponse } from "node:http";
import type { ForwardReceiver } from "../../cluster/forward-receiver.ts";
import { FORWARD_HEADER } from "../../cluster/forward-connection.ts";
import { OwlError } from "../../errors/owl-error.ts";
import { header, lifeOf } from "./exchange-io.ts";
import { readBytes } from "./read-body.ts";

export interface ForwardEndpointOptions {
  readonly receiver: ForwardReceiver;
  readonly maxBodyBytes: number;
}

/** Room for the data that the forwarding server adds to the body of a client. */
const ENVELOPE_BYTES = 65_536;
/** A body inside a JSON message has its quotation marks escaped once more. */
const QUOTED_TWICE = 2;

/** Receives calls that another server forwards. They are authenticated by the cluster key, not by a token. */
export class ForwardEndpoint {
  readonly #options: ForwardEndpointOptions;

  constructor(options: ForwardEndpointOptions) {
    this.#options = options;
  }

  async post(request: IncomingMessage, response: ServerResponse, release?: () => void): Promise<void> {
    const { receiver, maxBodyBytes } = this.#options;
    if (request.method !== "POST") throw new OwlError("method_not_allowed", "only POST is allowed here");
    const envelope = receiver.admit(header(request, FORWARD_HEADER));
    const sealed = await readBytes(request, QUOTED_TWICE * maxBodyBytes + ENVELOPE_BYTES);
    await receiver.serve(envelope, sealed, {
      signal: lifeOf(response).signal,
      ...(release && { release }),
      get waitingBytes() {
        return response.writableLength;
      },
      write(piece) {
        if (response.destroyed || response.writableEnded) return;
        if (!response.headersSent) response.writeHead(200, { "content-type": "application/octet-stream" });
        response.write(piece);
      },
    });
    response.end();
  }
}
