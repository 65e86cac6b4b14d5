import type { Operator } from "./operator-sessions.ts";

/** One request of the page, after everything about who asks has been settled. */
export interface ApiRequest {
  readonly operator: Operator;
  /** What the pattern of the path has caught, decoded. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  /** Parsed JSON of a POST; nothing of it is checked yet. */
  readonly body: unknown;
  /** The bytes of a PUT. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Ends when the page has gone. */
  readonly signal: AbortSignal;
}

/** A file for the person at the page, never a page itself. */
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

/** A stream of events, for as long as somebody listens. */
export class Events {
  readonly start: (sink: EventSink) => () => void;

  constructor(start: (sink: EventSink) => () => void) {
    this.start = start;
  }
}

export type ApiAnswer = Readonly<Record<string, unknown>> | Attachment | Events;

export interface ApiRoute {
  readonly method: "GET" | "POST" | "PUT";
  /** Behind `/dashboard/api/`. Parts in braces are caught: `sandboxes/{id}/files`. */
  readonly path: string;
  answer(request: ApiRequest): ApiAnswer | Promise<ApiAnswer>;
}
