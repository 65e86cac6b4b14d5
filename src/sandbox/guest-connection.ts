import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { z } from "zod";
import { type GuestOutput, outputSchema } from "../../contract/guest.ts";
import { CANCEL_METHOD, encodeFrame, FrameError, FrameReader, OUTPUT_METHOD } from "../../contract/json-rpc.ts";

/** A guest may make the server read this much at once, and then so much a second. More waits, and the sandbox with it. */
const BURST_COST = 16 * 1024 * 1024;
const COST_PER_SECOND = 32 * 1024 * 1024;
/** Small frames cost the server more than their bytes. */
const FRAME_COST = 2048;
/** Each chunk of a stream wakes the server up, however small it is. */
const CHUNK_COST = 2048;

const outputMessage = z.strictObject({
  jsonrpc: z.literal("2.0"),
  method: z.literal(OUTPUT_METHOD),
  params: outputSchema,
});

const errorAnswer = z.strictObject({ code: z.int(), message: z.string(), data: z.unknown().optional() });

const answerMessage = z.strictObject({
  jsonrpc: z.literal("2.0"),
  id: z.string(),
  result: z.unknown().optional(),
  error: errorAnswer.optional(),
});
/** Each value costs far more time and memory than its bytes when it is parsed. The largest valid answers have fewer. */
const MAX_VALUES = 50_000;
/** Twenty times as deep as a valid answer. */
const MAX_DEPTH = 200;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/** What came out of a sandbox is not what a guest sends: user code has taken the guest over, and the instance is ended. */
export class MalformedFrame extends Error {
  constructor(reason: string) {
    super(`malformed frame: ${reason}`);
    this.name = "MalformedFrame";
  }
}

/** The guest answered a request with an error. */
export class GuestError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor({ code, message, data }: z.output<typeof errorAnswer>) {
    super(message);
    this.name = "GuestError";
    this.code = code;
    this.data = data;
  }
}

interface GuestConnectionOptions {
  readonly stream: Duplex;
  readonly maxFrameBytes: number;
  /** May throw a `MalformedFrame`. */
  readonly onOutput: (output: GuestOutput) => void;
  /** The connection is of no use any more. A `MalformedFrame`: for what the guest sent. */
  readonly onLost: (error: Error) => void;
}

interface OpenRequest {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Requests to one guest and their answers, on one stream. Request ids are random: code inside that has not seen a request
 * cannot answer it. Code that reads the guest's memory can; it reaches only the answers of its own sandbox.
 */
export class GuestConnection {
  readonly #options: GuestConnectionOptions;
  readonly #frames: FrameReader;
  readonly #open = new Map<string, OpenRequest>();
  #isClosed = false;
  #credit = BURST_COST;
  #creditAtMs = performance.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: GuestConnectionOptions) {
    const { stream, maxFrameBytes, onLost } = options;
    this.#options = options;
    this.#frames = new FrameReader(maxFrameBytes);
    stream.on("data", this.#onData);
    stream.on("error", onLost);
    // A guest that is killed while it writes ends inside a frame: that is no violation.
    stream.once("end", () =>
      onLost(new Error(this.#frames.isInFrame ? "its stream ended in the middle of a frame" : "its stream ended")),
    );
    stream.once("close", () => {
      clearTimeout(this.#timer);
      onLost(new Error("its stream ended"));
    });
  }

  /** The answer is a value that nothing has checked. It rejects with a `GuestError`, or with the reason of `close`. */
  request(method: string, params: object): { readonly id: string; readonly answer: Promise<unknown> } {
    const id = randomBytes(15).toString("base64url");
    const answer = new Promise((resolve, reject) => this.#open.set(id, { resolve, reject }));
    this.#send({ jsonrpc: "2.0", id, method, params });
    return { id, answer };
  }

  /** The guest still answers the request. */
  cancel(id: string): void {
    this.#send({ jsonrpc: "2.0", method: CANCEL_METHOD, params: { id } });
  }

  /** Rejects what is open. What the guest still sends is read at the same pace and dropped. */
  close(error: Error): void {
    this.#isClosed = true;
    for (const { reject } of this.#open.values()) reject(error);
    this.#open.clear();
  }

  #send(message: object): void {
    if (!this.#isClosed) this.#options.stream.write(encodeFrame(message));
  }

  readonly #onData = (chunk: Buffer): void => {
    const { stream, onLost } = this.#options;
    let frames = 0;
    try {
      for (const body of this.#isClosed ? [] : this.#frames.read(chunk)) {
        frames += 1;
        this.#receive(parse(body));
        if (this.#isClosed) break;
      }
    } catch (error) {
      stream.off("data", this.#onData).pause();
      return onLost(toMalformedFrame(error));
    }
    this.#pace(CHUNK_COST + chunk.length + frames * FRAME_COST);
  };

  #receive(message: unknown): void {
    if (isNotification(message)) return this.#options.onOutput(readOutput(message));
    const parsed = answerMessage.safeParse(message);
    if (!parsed.success) throw new MalformedFrame("not an answer");
    const { id, result, error } = parsed.data;
    const request = this.#open.get(id);
    if (request === undefined) throw new MalformedFrame("an answer to nothing that was asked");
    this.#open.delete(id);
    if (error === undefined) request.resolve(result);
    else request.reject(new GuestError(error));
  }

  #pace(cost: number): void {
    const nowMs = performance.now();
    const earned = ((nowMs - this.#creditAtMs) / 1000) * COST_PER_SECOND;
    this.#credit = Math.min(BURST_COST, this.#credit + earned) - cost;
    this.#creditAtMs = nowMs;
    if (this.#credit >= 0) return;
    const { stream } = this.#options;
    stream.pause();
    this.#timer = setTimeout(() => stream.resume(), Math.ceil((-this.#credit / COST_PER_SECOND) * 1000));
  }
}

function parse(body: Buffer): unknown {
  try {
    assertFewValues(body);
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new MalformedFrame(error instanceof Error ? error.message : "not JSON");
  }
}

function toMalformedFrame(error: unknown): MalformedFrame {
  if (error instanceof MalformedFrame) return error;
  return new MalformedFrame(error instanceof FrameError ? error.message : "unreadable");
}

function isNotification(message: unknown): message is { readonly method: unknown } {
  return typeof message === "object" && message !== null && "method" in message && !("id" in message);
}

function readOutput(message: { readonly method: unknown }): GuestOutput {
  if (message.method !== OUTPUT_METHOD) throw new MalformedFrame("a notification that no guest sends");
  const parsed = outputMessage.safeParse(message);
  if (parsed.success) return parsed.data.params;
  throw new MalformedFrame("an output that is not as agreed");
}

/** Counts values and depth before the JSON is parsed. It does not check whether the bytes are valid JSON. */
export function assertFewValues(body: Buffer): void {
  let values = 1;
  let depth = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === QUOTE) at = stringEnd(body, at + 1);
    else if (byte === COMMA) values += 1;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      values += 1;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
    if (values > MAX_VALUES) throw new Error(`it holds more than ${MAX_VALUES} values`);
    if (depth > MAX_DEPTH) throw new Error(`it is nested deeper than ${MAX_DEPTH} levels`);
  }
}

/** The index of the string's closing quote. */
function stringEnd(body: Buffer, from: number): number {
  for (let at = from; at < body.length; at += 1) {
    if (body[at] === BACKSLASH) at += 1;
    else if (body[at] === QUOTE) return at;
  }
  return body.length;
}
