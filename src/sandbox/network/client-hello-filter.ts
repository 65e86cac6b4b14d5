import { Transform, type TransformCallback } from "node:stream";
import { readClientHello } from "./client-hello.ts";

// A ClientHello with post-quantum keys is about 2 KiB.
const MAX_CLIENT_HELLO_BYTES = 16 * 1024;

export interface ClientHelloFilterOptions {
  readonly agrees: (serverName: string) => boolean;
  readonly onRefused: (detail: string) => void;
}

/**
 * Holds back what the client sends until its TLS greeting is read, then passes everything on untouched. A greeting for another host
 * than the tunnel's goes no further: behind a shared front it would reach a host that nobody allowed.
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

  /** A client that ends before its greeting is whole gets nothing across. */
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
