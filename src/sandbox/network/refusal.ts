/** Why the proxy did not pass something on. The text goes to the client inside, for a model or a person to act on. */
export class EgressRefusal extends Error {
  readonly status: RefusalStatus;
  /** In one or two words, for records and metrics. */
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

/**
 * The text beside the status number. Many programs show this and nothing of the body, and of the answer to CONNECT it is
 * often all they show: so it names the rule, up to the first semicolon.
 */
export function phraseOf({ message }: EgressRefusal): string {
  const [rule = ""] = message.split(";", 1);
  return rule.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, MAX_PHRASE_CHARS);
}

/** A whole HTTP/1.1 answer, for sockets that no HTTP library holds any more. */
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
