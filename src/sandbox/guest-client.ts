import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { MAX_TIMER_MS } from "../config/value-rules.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { activeSpan, errorTypeOf } from "../telemetry/tracing/active-span.ts";
import {
  failureSchema,
  type GuestMethod,
  type GuestOutput,
  type GuestParams,
  type GuestResult,
  type OnOutput,
  resultSchemas,
  timingsSchema,
} from "../../contract/guest.ts";
import { ERROR_CODES } from "../../contract/json-rpc.ts";
import { GuestConnection, GuestError, MalformedFrame } from "./guest-connection.ts";
import { centred, type Span } from "../telemetry/tracing/span.ts";

/** After a cancellation the guest must answer within this time. */
const GRACE_MS = 5000;

/** Twice what a guest streams of one call (`guest/output/output-batches.ts`). */
const MAX_STREAMED_CHARS = 524_288;
const NOTIFICATION_CHARS = 16;
/** Output of calls that are over. A guest sends none; one batch is tolerated. */
const MAX_STRAY_CHARS = 16_384;

interface Listener {
  readonly onOutput: OnOutput;
  charsLeft: number;
}

/** The guest has exited, does not answer or was taken over. Open requests have no answer. */
export class GuestLost extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "GuestLost";
  }
}

interface GuestClientOptions {
  readonly stream: Duplex;
  readonly maxFrameBytes: number;
  readonly logger: Logger;
}

export interface RequestOptions {
  /** After this time the request is cancelled. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The server's client of one guest. It checks every result against the contract. */
export class GuestClient {
  /** Resolves with the reason when the connection is lost. */
  readonly lost: Promise<string>;
  readonly #connection: GuestConnection;
  readonly #logger: Logger;
  readonly #listeners = new Map<string, Listener>();
  /** For output of calls that are over. */
  readonly #stray: Listener = { onOutput: () => undefined, charsLeft: MAX_STRAY_CHARS };
  #lostReason: string | undefined;
  #hasViolated = false;
  #resolveLost: (reason: string) => void = () => undefined;

  constructor({ stream, maxFrameBytes, logger }: GuestClientOptions) {
    this.#logger = logger;
    this.lost = new Promise((resolve) => {
      this.#resolveLost = resolve;
    });
    this.#connection = new GuestConnection({
      stream,
      maxFrameBytes,
      onOutput: (output) => this.#onOutput(output),
      onLost: (error) =>
        error instanceof MalformedFrame ? this.#failForViolation(error.message) : this.fail(error.message),
    });
  }

  get isLost(): boolean {
    return this.#lostReason !== undefined;
  }

  /** Whether the guest sent something that violates the contract. */
  get hasViolated(): boolean {
    return this.#hasViolated;
  }

  /** Routes the output of a call by its id until `stop` is called. A guest that sends more than `maxChars` is ended. */
  listen(onOutput: OnOutput, maxChars = MAX_STREAMED_CHARS): { readonly callId: string; readonly stop: () => void } {
    const callId = randomBytes(12).toString("base64url");
    this.#listeners.set(callId, { onOutput, charsLeft: maxChars });
    return { callId, stop: () => this.#listeners.delete(callId) };
  }

  /**
   * Sends a request. After the time-out or an abort it is cancelled. Its answer is still awaited, because it has the output so
   * far; a guest that does not answer then is ended.
   */
  request<M extends GuestMethod>(method: M, params: GuestParams[M], options: RequestOptions): Promise<GuestResult<M>> {
    return activeSpan() === undefined ? this.#request(method, params, options) : this.#traced(method, params, options);
  }

  async #traced<M extends GuestMethod>(
    method: M,
    params: GuestParams[M],
    options: RequestOptions,
  ): Promise<GuestResult<M>> {
    const span = activeSpan()?.child({ name: `guest ${method}`, kind: "client" });
    const onAnswer = (answer: unknown): unknown => (span ? takeTimings(span, method, answer) : answer);
    try {
      const result = await this.#request(
        method,
        { ...params, traceparent: span?.traceparent },
        { ...options, onAnswer },
      );
      span?.end();
      return result;
    } catch (error) {
      span?.end(errorTypeOf(error));
      throw error;
    }
  }

  async #request<M extends GuestMethod>(
    method: M,
    params: GuestParams[M],
    { timeoutMs, signal, onAnswer }: RequestOptions & { readonly onAnswer?: (answer: unknown) => unknown },
  ): Promise<GuestResult<M>> {
    if (this.#lostReason !== undefined) throw new GuestLost(this.#lostReason);
    if (signal?.aborted === true) throw new OwlError("cancelled", `${method} was cancelled`);
    const { id, answer } = this.#connection.request(method, params);
    const timers: NodeJS.Timeout[] = [];
    const cancel = (): void => {
      this.#connection.cancel(id);
      timers.push(setTimeout(() => this.fail(`it did not answer ${method}`), GRACE_MS));
    };
    timers.push(setTimeout(cancel, Math.min(timeoutMs, MAX_TIMER_MS)));
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const result = await answer;
      return this.#checked(method, onAnswer === undefined ? result : onAnswer(result));
    } catch (error) {
      throw this.#explain(method, error);
    } finally {
      for (const timer of timers) clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Ends the connection; open requests reject with the reason. */
  fail(reason: string): void {
    if (this.#lostReason !== undefined) return;
    this.#lostReason = reason;
    this.#connection.close(new GuestLost(reason));
    this.#resolveLost(reason);
  }

  #failForViolation(reason: string): void {
    if (this.#lostReason === undefined) this.#hasViolated = true;
    this.fail(reason);
  }

  #checked<M extends GuestMethod>(method: M, answer: unknown): GuestResult<M> {
    const parsed = resultSchemas[method].safeParse(answer);
    // oxlint-disable-next-line typescript/consistent-type-assertions -- the compiler does not follow the method through the table
    if (parsed.success) return parsed.data as GuestResult<M>;
    const reason = `its answer to ${method} is not as agreed`;
    this.#failForViolation(reason);
    throw new GuestLost(reason);
  }

  #explain(method: GuestMethod, error: unknown): unknown {
    if (!(error instanceof GuestError)) return error;
    const failure = error.code === ERROR_CODES.failure ? failureSchema.safeParse(error.data) : undefined;
    if (failure?.success === true) {
      const { kind, message, hint } = failure.data;
      this.#logger.debug("guest refused a request", { method, code: error.code, reason: kind });
      return new OwlError("tool_failure", message.slice(0, 2000), {
        hint: hint.slice(0, 1000),
        facts: { reason: kind },
      });
    }
    this.#logger.warning("guest request failed", { method, code: error.code });
    if (error.code === ERROR_CODES.invalidParams)
      return new OwlError("tool_failure", error.message.slice(0, 2000), { facts: { reason: "invalid_params" } });
    return new OwlError("internal", `the sandbox could not do ${method}`, { cause: error });
  }

  #onOutput(output: GuestOutput): void {
    const listener = this.#listeners.get(output.callId) ?? this.#stray;
    listener.charsLeft -= output.text.length + NOTIFICATION_CHARS;
    if (listener.charsLeft < 0) throw new MalformedFrame("more output than a guest sends");
    listener.onOutput(output);
  }
}

/** Adds the times that the guest measured to the trace and returns the answer without them. Invalid times are ignored. */
function takeTimings(span: Span, method: GuestMethod, answer: unknown): unknown {
  if (typeof answer !== "object" || answer === null || !("timings" in answer)) return answer;
  const { timings, ...rest } = answer;
  record(span, method, timings);
  return rest;
}

function record(span: Span, method: GuestMethod, timings: unknown): void {
  const parsed = timingsSchema.safeParse(timings);
  if (!parsed.success) return;
  const [whole, ...parts] = parsed.data;
  if (whole?.name !== "request") return;
  const { durationMs: wholeMs } = whole;
  const inside = span.record({ name: method, kind: "server", ...centred(span, { ...whole, wholeMs }) });
  for (const { name, ...measured } of parts) inside.record({ name, ...centred(span, { ...measured, wholeMs }) });
}
