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

/** A guest that was told to stop something gets this long before it counts as stuck. */
const GRACE_MS = 5000;

/** A guest streams half as much of a call (`guest/output/output-batches.ts`). */
const MAX_STREAMED_CHARS = 524_288;
const NOTIFICATION_CHARS = 16;
/** An honest guest sends none, whatever order a call ends in; this is one batch more. */
const MAX_STRAY_CHARS = 16_384;

interface Listener {
  readonly onOutput: OnOutput;
  charsLeft: number;
}

/** The guest is gone, stuck or taken over; whatever it was asked has no answer. */
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
  /** Time after which the guest is told to stop; it should have ended by itself before. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The host's end of the line to one guest. It believes nothing that is not in the form agreed on. */
export class GuestClient {
  /** Resolves with the reason when the guest can no longer be talked to. */
  readonly lost: Promise<string>;
  readonly #connection: GuestConnection;
  readonly #logger: Logger;
  readonly #listeners = new Map<string, Listener>();
  /** Of calls that are over. */
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

  /** Whether it was lost for what it sent. An honest guest never is, however it ends. */
  get hasViolated(): boolean {
    return this.#hasViolated;
  }

  /**
   * Output of a call is routed by its id until the returned function is called. A guest that sends more than an honest one does is
   * lost; a person's terminal has no such number.
   */
  listen(onOutput: OnOutput, maxChars = MAX_STREAMED_CHARS): { readonly callId: string; readonly stop: () => void } {
    const callId = randomBytes(12).toString("base64url");
    this.#listeners.set(callId, { onOutput, charsLeft: maxChars });
    return { callId, stop: () => this.#listeners.delete(callId) };
  }

  /**
   * Asks the guest. When time is up or the caller is gone the guest is told to stop, and its answer is still waited
   * for, since it says what came out so far; a guest that does not answer then is lost.
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

  /** Ends the line; everything open fails with the reason. */
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

/**
 * Puts what the guest measured into the trace, and returns the answer without it. Times that are not as agreed are left out: they
 * are no reason to end a sandbox.
 */
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
