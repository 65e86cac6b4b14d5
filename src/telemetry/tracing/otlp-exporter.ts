import type { Logger } from "../logger.ts";
import type { SpanRecord, Attributes, AttributeValue } from "./span.ts";

export interface OtlpExporterOptions {
  /** The whole URL of the collector, including `/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly source: TraceSource;
  readonly logger: Logger;
  /** Counts exported and dropped spans. */
  readonly onSpans?: ((outcome: "exported" | "dropped", count: number) => void) | undefined;
  /** The timeout of one request. Default: ten seconds. */
  readonly timeoutMs?: number;
  readonly firstPauseMs?: number;
  /** The time limit for sending the queued spans when the server stops. Default: two seconds. */
  readonly lastWordsMs?: number;
}

/** The limit of queued spans, about 4 MB with their attributes. Further spans are dropped. */
const MAX_WAITING = 8192;
const BATCH = 512;
const SEND_AFTER_MS = 1000;
const TIMEOUT_MS = 10_000;
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
const LAST_WORDS_MS = 2000;
/** The collector is overloaded or unreachable. With any other status a retry would fail again. */
const RETRYABLE = new Set([408, 429, 502, 503, 504]);

type Delivery = "done" | "refused" | "later";

/**
 * Sends spans in batches, one request at a time. When the collector is unreachable, spans are dropped and the server
 * continues.
 */
export class OtlpExporter {
  readonly #options: OtlpExporterOptions;
  #isStopping = false;
  #request: AbortController | undefined;
  #waiting: SpanRecord[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #isInTrouble = false;
  #wakeUp: (() => void) | undefined;

  constructor(options: OtlpExporterOptions) {
    this.#options = options;
  }

  readonly add = (span: SpanRecord): void => {
    if (this.#waiting.length >= MAX_WAITING || this.#isStopping) {
      this.#options.onSpans?.("dropped", 1);
      return;
    }
    this.#waiting.push(span);
    if (this.#waiting.length >= BATCH) this.#send();
    else this.#timer ??= setTimeout(this.#send, SEND_AFTER_MS).unref();
  };

  /** Sends the queued spans within the time limit of a server that stops. */
  async close(): Promise<void> {
    this.#wakeUp?.();
    this.#send();
    const timer = setTimeout(() => {
      this.#isStopping = true;
      this.#request?.abort();
      this.#wakeUp?.();
    }, this.#options.lastWordsMs ?? LAST_WORDS_MS);
    await this.#sending;
    clearTimeout(timer);
    this.#isStopping = true;
  }

  readonly #send = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  };

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH);
      this.#waiting = this.#waiting.slice(BATCH);
      const isDelivered = await this.#deliver(batch);
      this.#options.onSpans?.(isDelivered ? "exported" : "dropped", batch.length);
    }
  }

  async #deliver(batch: readonly SpanRecord[]): Promise<boolean> {
    const body = toOtlpJson(batch, this.#options.source);
    let pauseMs = this.#options.firstPauseMs ?? FIRST_PAUSE_MS;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      if (this.#isStopping) return false;
      const delivery = await this.#post(body);
      if (delivery !== "later") return delivery === "done";
      if (attempt < ATTEMPTS && !this.#isStopping) await this.#pause(pauseMs);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
    return false;
  }

  async #post(body: string): Promise<Delivery> {
    const { url, headers, timeoutMs = TIMEOUT_MS } = this.#options;
    const request = new AbortController();
    this.#request = request;
    const timer = setTimeout(() => request.abort(), timeoutMs);
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        // A redirect could send spans and tokens to another server.
        redirect: "error",
        signal: request.signal,
      });
      await response.body?.cancel();
      if (response.ok) {
        this.#tellWell();
        return "done";
      }
      this.#tellTrouble(`the collector answered ${response.status}`);
      return RETRYABLE.has(response.status) ? "later" : "refused";
    } catch (error) {
      this.#tellTrouble(error instanceof Error ? error.name : "unknown");
      return "later";
    } finally {
      clearTimeout(timer);
    }
  }

  /** Logs once per outage. Error messages of `fetch` contain the URL, which may contain a secret. */
  #tellTrouble(reason: string): void {
    if (this.#isInTrouble || this.#isStopping) return;
    this.#isInTrouble = true;
    this.#options.logger.warning("traces cannot be delivered", { reason });
  }

  #tellWell(): void {
    if (!this.#isInTrouble) return;
    this.#isInTrouble = false;
    this.#options.logger.info("traces are delivered again");
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref();
      this.#wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** The source of the spans, as collectors display it. */
export interface TraceSource {
  readonly serviceName: string;
  readonly version: string;
  readonly instanceId: string;
}

const KINDS: Readonly<Record<SpanRecord["kind"], number>> = { internal: 1, server: 2, client: 3 };
const STATUS_ERROR = 2;
const NANOS_OF_MS = 1_000_000;

/** The body of a request to `/v1/traces`: the JSON encoding of OTLP, with ids in hexadecimal and times as text. */
export function toOtlpJson(spans: readonly SpanRecord[], { serviceName, version, instanceId }: TraceSource): string {
  const resource = {
    "service.name": serviceName,
    "service.version": version,
    "service.instance.id": instanceId,
    "telemetry.sdk.name": "owlclaw",
    "telemetry.sdk.language": "nodejs",
  };
  const scope = { name: "owlclaw", version };
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: toKeyValues(resource) },
        scopeSpans: [{ scope, spans: spans.map(toOtlpSpan) }],
      },
    ],
  });
}

function toOtlpSpan({ errorType, ...span }: SpanRecord): object {
  const attributes = errorType === undefined ? span.attributes : { ...span.attributes, "error.type": errorType };
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentId !== undefined && { parentSpanId: span.parentId }),
    ...(span.state !== undefined && { traceState: span.state }),
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: toNanos(span.startMs),
    endTimeUnixNano: toNanos(span.endMs),
    attributes: toKeyValues(attributes),
    ...(errorType !== undefined && { status: { code: STATUS_ERROR } }),
  };
}

/** Nanoseconds since 1970 exceed the safe integers of a number. */
function toNanos(ms: number): string {
  const whole = Math.floor(ms);
  const nanos = Math.floor((ms - whole) * NANOS_OF_MS);
  return `${whole}${String(nanos).padStart(6, "0")}`;
}

function toKeyValues(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: toAnyValue(value) }));
}

function toAnyValue(value: AttributeValue): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
