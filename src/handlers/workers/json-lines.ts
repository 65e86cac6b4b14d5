import { StringDecoder } from "node:string_decoder";
import type { Duplex } from "node:stream";

interface JsonLinesOptions {
  readonly stream: Duplex;
  /** A longer line ends the stream. */
  readonly maxLineChars: number;
  /** Throws for a line that must not be parsed, which ends the stream. */
  readonly assertLine?: ((line: string) => void) | undefined;
  readonly onMessage: (message: unknown) => void;
  /** Called once, when the stream ended or the peer sent an invalid line. */
  readonly onEnd: (reason: string) => void;
}

/** JSON objects over a byte stream, one per line. Messages of one event-loop turn are written together. */
export class JsonLines {
  readonly #options: JsonLinesOptions;
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  #waiting = "";
  #isScheduled = false;
  #isOver = false;

  constructor(options: JsonLinesOptions) {
    this.#options = options;
    const { stream } = options;
    stream.on("data", (chunk: Buffer) => this.#read(this.#decoder.write(chunk)));
    stream.once("error", (error: Error) => this.end(error.message));
    stream.once("end", () => this.end("the stream ended"));
    stream.once("close", () => this.end("the stream closed"));
  }

  send(message: object): void {
    if (this.#isOver) return;
    this.#waiting += `${JSON.stringify(message)}\n`;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    if (this.#isOver || this.#waiting === "") return;
    const text = this.#waiting;
    this.#waiting = "";
    this.#options.stream.write(text);
  };

  /** Writes pending messages before the process ends. */
  flush(): void {
    this.#flush();
  }

  end(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.stream.destroy();
    this.#options.onEnd(reason);
  }

  #read(text: string): void {
    const { maxLineChars, assertLine, onMessage } = this.#options;
    let from = 0;
    for (let at = text.indexOf("\n"); at !== -1 && !this.#isOver; at = text.indexOf("\n", from)) {
      const line = this.#rest + text.slice(from, at);
      this.#rest = "";
      from = at + 1;
      const message = line.length <= maxLineChars ? parse(line, assertLine) : undefined;
      if (message === undefined) return this.end("it sent what is no message");
      onMessage(message);
    }
    this.#rest += text.slice(from);
    if (this.#rest.length > maxLineChars) this.end(`it sent a line of more than ${maxLineChars} characters`);
  }
}

function parse(line: string, assertLine: JsonLinesOptions["assertLine"]): unknown {
  try {
    assertLine?.(line);
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    // The caller ends the stream.
    return undefined;
  }
}
