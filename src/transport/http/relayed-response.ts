import type { Principal } from "../../auth/principal.ts";
import type { ForwardNews } from "../../cluster/forward-message.ts";
import type { ForwardCall } from "../../cluster/forwarder.ts";
import type { Lifeline } from "../../call/lifeline.ts";
import { endWithToken, EVENT_STREAM_HEADERS, MAX_UNREAD_BYTES } from "./event-stream.ts";
import type { AnswerSink } from "./exchange-io.ts";

export interface RelayedResponseOptions {
  readonly response: AnswerSink;
  readonly principal: Principal;
  /** Ends when the client disconnects. */
  readonly gone: Lifeline;
  /** The time without any message after which the other server counts as unreachable. */
  readonly silenceMs: number;
}

/**
 * Writes to the client what the server with its session sends. Aborts the request there when the client disconnects or
 * the other server is silent for too long.
 */
export class RelayedResponse implements ForwardCall {
  readonly #response: AnswerSink;
  readonly #principal: Principal;
  readonly #silenceMs: number;
  readonly #controller = new AbortController();
  #watchdog: NodeJS.Timeout;
  readonly #unlink: () => void;
  #isStream = false;

  constructor({ response, principal, gone, silenceMs }: RelayedResponseOptions) {
    this.#response = response;
    this.#principal = principal;
    this.#silenceMs = silenceMs;
    this.#watchdog = this.#watch();
    this.#unlink = gone.onEnd(() => this.hangUp());
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly hear = (news: ForwardNews): void => {
    clearTimeout(this.#watchdog);
    this.#watchdog = this.#watch();
    if (this.#response.destroyed || this.#response.writableEnded) return;
    if (news.news === "head") this.#begin(news.status, news.headers);
    else if (news.news === "data") this.#write(news.text);
  };

  hangUp(): void {
    this.#controller.abort();
  }

  close(): void {
    this.#unlink();
    clearTimeout(this.#watchdog);
  }

  #begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.#isStream = headers["content-type"] === EVENT_STREAM_HEADERS["content-type"];
    this.#response.writeHead(status, headers);
    if (!this.#isStream) return;
    this.#response.flushHeaders();
    endWithToken(this.#response, this.#principal.expiresAt);
  }

  #write(text: string): void {
    this.#response.write(text);
    if (this.#isStream && this.#response.writableLength > MAX_UNREAD_BYTES) this.#response.destroy();
  }

  #watch(): NodeJS.Timeout {
    return setTimeout(() => this.hangUp(), this.#silenceMs).unref();
  }
}
