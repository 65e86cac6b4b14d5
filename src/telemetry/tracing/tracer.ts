import { type TraceContext, newRandomTraceId } from "./trace-context.ts";
import { Span, type SpanOptions, type SpanSink } from "./span.ts";

export interface TracerOptions {
  readonly sink: SpanSink;
  /** Which share of the traces that begin here is kept. Of others, their caller has decided. */
  readonly sampleRatio: number;
}

export interface RootOptions extends SpanOptions {
  readonly traceId: string;
  readonly parent: TraceContext | undefined;
}

/** The ids of traces are random: their last 14 digits say for every server alike whether a trace is kept. */
const RANDOM_DIGITS = 14;
const RANDOM_VALUES = 16 ** 13;

/** Begins traces, or goes on with those of callers. */
export class Tracer {
  readonly #sink: SpanSink;
  readonly #sampleRatio: number;

  constructor({ sink, sampleRatio }: TracerOptions) {
    this.#sink = sink;
    this.#sampleRatio = sampleRatio;
  }

  /** Nothing when this trace is not kept. */
  begin({ traceId, parent, ...options }: RootOptions): Span | undefined {
    // A parent of another trace is none.
    const known = parent?.traceId === traceId ? parent : undefined;
    if (!(known?.isSampled ?? this.#isKept(traceId))) return undefined;
    return new Span({ ...options, traceId, parentId: known?.spanId, state: known?.state, sink: this.#sink });
  }

  /** Work of the server's own, which no caller waits for; it ends now. */
  record({ durationMs, ...options }: SpanOptions & { readonly durationMs: number }): void {
    const traceId = newRandomTraceId();
    const startMs = performance.timeOrigin + performance.now() - durationMs;
    this.begin({ ...options, traceId, parent: undefined, startMs })?.end();
  }

  #isKept(traceId: string): boolean {
    if (this.#sampleRatio >= 1) return true;
    // 13 digits are what a number holds exactly.
    const value = Number.parseInt(traceId.slice(-RANDOM_DIGITS).slice(1), 16);
    return value < this.#sampleRatio * RANDOM_VALUES;
  }
}
