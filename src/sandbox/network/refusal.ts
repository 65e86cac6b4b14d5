/** Why the proxy refused a request. The text is sent to the program inside. */
export class EgressRefusal extends Error {
  readonly status: RefusalStatus;
  /** A short text for records and metrics. */
  readonly reason: string;

  constructor(status: RefusalStatus, reason: string, message: string) {
    super(message);
    this.name = "EgressRefusal";
    this.status = status;
    this.reason = reason;
  }
}

type RefusalStatus = 400 | 403 | 408 | 431 | 502 | 503 | 504;

const MAX_PHRASE_CHARS = 200;

/** The reason phrase of the status line. Many programs show it and not the body, so it is the text up to the first semicolon. */
export function phraseOf({ message }: EgressRefusal): string {
  const [rule = ""] = message.split(";", 1);
  return rule.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, MAX_PHRASE_CHARS);
}

/** A complete HTTP/1.1 answer, for a raw socket. */
export function toRawResponse(refusal: EgressRefusal): string {
  const body = `${refusal.message}\n`;
  const head = [
    `HTTP/1.1 ${refusal.status} ${phraseOf(refusal)}`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}
