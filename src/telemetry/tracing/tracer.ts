import { type TraceContext, newRandomTraceId } from "./trace-context.ts";
import { Span, type SpanOptions, type SpanSink } from "./span.ts";

export interface TracerOptions {
  readonly sink: SpanSink;
  /** The share of new traces that is kept. For a trace of a caller, the flag of the caller decides. */
  readonly sampleRatio: number;
}

export interface RootOptions extends SpanOptions {
  readonly traceId: string;
  readonly parent: TraceContext | undefined;
}

/** Trace ids are random. Every server decides by their last 14 digits, so all of them keep the same traces. */
const RANDOM_DIGITS = 14;
const RANDOM_VALUES = 16 ** 13;

/** Begins traces, or continues those of callers. */
export class Tracer {
  readonly #sink: SpanSink;
  readonly #sampleRatio: number;

  constructor({ sink, sampleRatio }: TracerOptions) {
    this.#sink = sink;
    this.#sampleRatio = sampleRatio;
  }

  /** Undefined when this trace is not kept. */
  begin({ traceId, parent, ...options }: RootOptions): Span | undefined {
    // A parent from another trace is ignored.
    const known = parent?.traceId === traceId ? parent : undefined;
    if (!(known?.isSampled ?? this.#isKept(traceId))) return undefined;
    return new Span({ ...options, traceId, parentId: known?.spanId, state: known?.state, sink: this.#sink });
  }

  /** Records work of the server itself that has just ended and that no caller waited for. */
  record({ durationMs, ...options }: SpanOptions & { readonly durationMs: number }): void {
    const traceId = newRandomTraceId();
    const startMs = performance.timeOrigin + performance.now() - durationMs;
    this.begin({ ...options, traceId, parent: undefined, startMs })?.end();
  }

  #isKept(traceId: string): boolean {
    if (this.#sampleRatio >= 1) return true;
    // A number represents 13 hexadecimal digits exactly, so the first of the 14 is skipped.
    const value = Number.parseInt(traceId.slice(-RANDOM_DIGITS).slice(1), 16);
    return value < this.#sampleRatio * RANDOM_VALUES;
  }
}
