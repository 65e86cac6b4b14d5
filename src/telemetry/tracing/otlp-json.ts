import type { Attributes, AttributeValue, SpanRecord } from "./span.ts";

/** Who sends spans, as collectors show it. */
export interface TraceSource {
  readonly serviceName: string;
  readonly version: string;
  readonly instanceId: string;
}

const KINDS: Readonly<Record<SpanRecord["kind"], number>> = { internal: 1, server: 2, client: 3 };
const STATUS_ERROR = 2;
const NANOS_OF_MS = 1_000_000;

/** The body of a request to `/v1/traces`: the JSON form of OTLP, with ids in hexadecimal and times as text. */
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

/** Nanoseconds since 1970 do not fit into a number. */
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
