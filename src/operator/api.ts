import type { Operator } from "./operator-sessions.ts";

/** One request of the dashboard, after the login, origin and CSRF checks. */
export interface ApiRequest {
  readonly operator: Operator;
  /** The decoded values of the braces in the path pattern. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  /** The parsed JSON of a POST, not validated yet. */
  readonly body: unknown;
  /** The body of a PUT. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Aborts when the page has disconnected. */
  readonly signal: AbortSignal;
}

/** A file that the browser downloads and never renders as a page. */
export class Attachment {
  readonly name: string;
  readonly type: string;
  readonly chunks: AsyncIterable<string | Uint8Array>;

  constructor({ name, type, chunks }: Pick<Attachment, "name" | "type" | "chunks">) {
    this.name = name;
    this.type = type;
    this.chunks = chunks;
  }
}

export interface EventSink {
  /** `data` is JSON text. */
  send(event: string, data: string, id?: string): void;
  end(): void;
}

/** An event stream, for as long as the page is connected. */
export class Events {
  readonly start: (sink: EventSink) => () => void;

  constructor(start: (sink: EventSink) => () => void) {
    this.start = start;
  }
}

export type ApiAnswer = Readonly<Record<string, unknown>> | Attachment | Events;

export interface ApiRoute {
  readonly method: "GET" | "POST" | "PUT";
  /** The path below `/dashboard/api/`. Braces match one part: `sandboxes/{id}/files`. */
  readonly path: string;
  answer(request: ApiRequest): ApiAnswer | Promise<ApiAnswer>;
}
