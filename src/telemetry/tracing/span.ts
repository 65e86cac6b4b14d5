import { toTraceparent, type TraceContext, newSpanId } from "./trace-context.ts";

export type SpanKind = "internal" | "server" | "client";
export type AttributeValue = string | number | boolean;
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** A span that has ended, as it is exported. */
export interface SpanRecord {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  /** `tracestate`. */
  readonly state: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  /** Milliseconds since 1970, with their fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** `error.type`: a kind, never a message, because messages contain text of users. */
  readonly errorType: string | undefined;
}

export type SpanSink = (record: SpanRecord) => void;

export interface SpanOptions {
  readonly name: string;
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
  /** Default: now. */
  readonly startMs?: number;
}

export interface SpanSeed extends SpanOptions {
  readonly traceId: string;
  readonly parentId: string | undefined;
  readonly state: string | undefined;
  readonly sink: SpanSink;
}

/** An operation with times that were measured before, or by another process. */
export interface MeasuredSpan extends SpanOptions {
  readonly startMs: number;
  readonly endMs: number;
  readonly errorType?: string | undefined;
}

/**
 * Places times from another clock, such as the guest's, within a span that is still open. The time that they do not
 * account for is split equally between the request and the response. The result is clamped to the span, because the
 * measuring process is not trusted.
 */
export function centred(
  { startMs }: Pick<Span, "startMs">,
  measured: { readonly startMs: number; readonly durationMs: number; readonly wholeMs?: number },
): { readonly startMs: number; readonly endMs: number } {
  const nowMs = clockMs();
  const wholeMs = measured.wholeMs ?? measured.durationMs;
  const wayMs = Math.max(0, nowMs - startMs - wholeMs) / 2;
  const inside = (ms: number): number => Math.min(Math.max(ms, startMs), nowMs);
  const from = inside(startMs + wayMs + measured.startMs);
  return { startMs: from, endMs: inside(from + measured.durationMs) };
}

const MAX_ATTRIBUTE_CHARS = 256;

/** The current time on a clock that never goes back while the process runs. */
export function clockMs(): number {
  return performance.timeOrigin + performance.now();
}

/** One operation in a trace. It is exported when it has ended. */
export class Span implements TraceContext {
  readonly traceId: string;
  readonly spanId: string = newSpanId();
  readonly isSampled = true;
  readonly startMs: number;
  readonly #seed: SpanSeed;
  #more: Record<string, AttributeValue> | undefined;
  #stage: Span | undefined;
  #isOver = false;

  constructor(seed: SpanSeed) {
    this.#seed = seed;
    this.traceId = seed.traceId;
    this.startMs = seed.startMs ?? clockMs();
  }

  get traceparent(): string {
    return toTraceparent(this);
  }

  get state(): string | undefined {
    return this.#seed.state;
  }

  set(name: string, value: AttributeValue): void {
    (this.#more ??= {})[name] = value;
  }

  /** Creates a child of this span, or of its current stage. */
  child(options: SpanOptions): Span {
    const parent = this.#stage ?? this;
    const { traceId, state, sink } = this.#seed;
    return new Span({ ...options, traceId, parentId: parent.spanId, state, sink });
  }

  /** Adds a child with measured times. */
  record({ endMs, errorType, ...options }: MeasuredSpan): Span {
    const span = this.child(options);
    span.#finish(errorType, endMs);
    return span;
  }

  /** Ends the current stage and starts the next one. Spans that begin meanwhile are children of the stage. */
  stage(name: string, attributes: Attributes = {}): void {
    this.endStage();
    this.#stage = this.child({ name, attributes });
  }

  endStage(errorType?: string): void {
    const stage = this.#stage;
    this.#stage = undefined;
    stage?.end(errorType);
  }

  end(errorType?: string): void {
    this.endStage(errorType);
    this.#finish(errorType, clockMs());
  }

  #finish(errorType: string | undefined, endMs: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { name, kind = "internal", attributes = {}, parentId, state, sink } = this.#seed;
    sink({
      traceId: this.traceId,
      spanId: this.spanId,
      parentId,
      state,
      name: name.slice(0, MAX_ATTRIBUTE_CHARS),
      kind,
      startMs: this.startMs,
      endMs: Math.max(endMs, this.startMs),
      attributes: bounded(this.#more === undefined ? attributes : { ...attributes, ...this.#more }),
      errorType,
    });
  }
}

function bounded(attributes: Attributes): Attributes {
  const isLong = (value: AttributeValue): value is string =>
    typeof value === "string" && value.length > MAX_ATTRIBUTE_CHARS;
  if (!Object.values(attributes).some(isLong)) return attributes;
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [
      name,
      isLong(value) ? value.slice(0, MAX_ATTRIBUTE_CHARS) : value,
    ]),
  );
}
