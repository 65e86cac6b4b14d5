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

export type RefusalStatus = 400 | 403 | 408 | 431 | 502 | 503 | 504;

const PHRASES: Readonly<Record<RefusalStatus, string>> = {
  400: "Bad Request",
  403: "Forbidden",
  408: "Request Timeout",
  431: "Request Header Fields Too Large",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

/** A whole HTTP/1.1 answer, for sockets that no HTTP library holds any more. */
export function toRawResponse(refusal: EgressRefusal): string {
  const body = `${refusal.message}\n`;
  const head = [
    `HTTP/1.1 ${refusal.status} ${PHRASES[refusal.status]}`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}
