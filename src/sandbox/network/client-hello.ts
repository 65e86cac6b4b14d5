import { Transform, type TransformCallback } from "node:stream";

const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME_EXTENSION = 0;
// A ClientHello with post-quantum keys is about 2 KiB.
const MAX_CLIENT_HELLO_BYTES = 16 * 1024;

/** What the first bytes of a tunnel are. `more`: the ClientHello is incomplete. */
type ClientHello =
  | { readonly kind: "more" }
  | { readonly kind: "not-tls" }
  | { readonly kind: "malformed" }
  | { readonly kind: "tls"; readonly serverName: string | undefined };

/** Parses a ClientHello, also one in several records. */
export function readClientHello(bytes: Buffer): ClientHello {
  if (bytes.length === 0) return { kind: "more" };
  if (bytes[0] !== HANDSHAKE_RECORD) return { kind: "not-tls" };
  const handshake = joinRecords(bytes);
  if (handshake === undefined) return { kind: "malformed" };
  if (handshake.length < 4) return { kind: "more" };
  if (handshake[0] !== CLIENT_HELLO) return { kind: "malformed" };
  const length = handshake.readUIntBE(1, 3);
  if (handshake.length < 4 + length) return { kind: "more" };
  try {
    return { kind: "tls", serverName: serverNameOf(new Reader(handshake.subarray(4, 4 + length))) };
  } catch {
    // A length field exceeds the message.
    return { kind: "malformed" };
  }
}

/** The payload of all handshake records so far; undefined when a record is of another type. */
function joinRecords(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  let at = 0;
  while (at + 5 <= bytes.length) {
    if (bytes[at] !== HANDSHAKE_RECORD || bytes[at + 1] !== 3)
      return parts.length > 0 ? Buffer.concat(parts) : undefined;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0) return undefined;
    parts.push(bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return Buffer.concat(parts);
}

function serverNameOf(hello: Reader): string | undefined {
  hello.skip(2 + 32);
  hello.take(1);
  hello.take(2);
  hello.take(1);
  if (hello.isAtEnd) return undefined;
  const extensions = new Reader(hello.take(2));
  const names: string[] = [];
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    const body = extensions.take(2);
    if (type !== SERVER_NAME_EXTENSION) continue;
    const list = new Reader(new Reader(body).take(2));
    while (!list.isAtEnd) {
      list.skip(1);
      names.push(list.take(2).toString("latin1"));
    }
  }
  if (names.length > 1) throw new RangeError("more than one server name");
  return names[0];
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(size: number): number {
    const value = this.#bytes.readUIntBE(this.#at, size);
    this.#at += size;
    return value;
  }

  skip(size: number): void {
    this.#at += size;
    if (this.#at > this.#bytes.length) throw new RangeError("past the end");
  }

  /** The bytes after a length field of this size. */
  take(lengthSize: number): Buffer {
    const length = this.number(lengthSize);
    const start = this.#at;
    this.skip(length);
    return this.#bytes.subarray(start, start + length);
  }
}

interface ClientHelloFilterOptions {
  readonly agrees: (serverName: string) => boolean;
  readonly onRefused: (detail: string) => void;
}

/**
 * Buffers the bytes of the client until its ClientHello is complete, then passes all bytes on unchanged. A ClientHello for another
 * host than the tunnel's is refused: a shared front end would route it to a host that no rule allows.
 */
export class ClientHelloFilter extends Transform {
  readonly #options: ClientHelloFilterOptions;
  #state: "reading" | "open" | "shut" = "reading";
  #held = Buffer.alloc(0);

  constructor(options: ClientHelloFilterOptions) {
    super();
    this.#options = options;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (this.#state === "open") {
      done(null, chunk);
      return;
    }
    if (this.#state === "reading") this.#read(chunk);
    done();
  }

  /** An incomplete ClientHello is dropped. */
  override _flush(done: TransformCallback): void {
    done();
  }

  #read(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#held, chunk]);
    const verdict = this.#judge(bytes);
    this.#held = verdict === "wait" ? bytes : Buffer.alloc(0);
    if (verdict === "wait") return;
    this.#state = verdict === "pass" ? "open" : "shut";
    if (verdict === "pass") this.push(bytes);
    else this.#options.onRefused(verdict.refused);
  }

  #judge(bytes: Buffer): "wait" | "pass" | { refused: string } {
    const clientHello = readClientHello(bytes);
    switch (clientHello.kind) {
      case "more":
        return bytes.length < MAX_CLIENT_HELLO_BYTES ? "wait" : { refused: "the TLS greeting is too long" };
      case "malformed":
        return { refused: "the TLS greeting is malformed" };
      case "not-tls":
        return "pass";
      case "tls":
        if (clientHello.serverName === undefined || this.#options.agrees(clientHello.serverName)) return "pass";
        return { refused: "the TLS greeting names another server" };
    }
  }
}
