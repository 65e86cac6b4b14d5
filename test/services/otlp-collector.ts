import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { wholeBody } from "./whole-body.ts";

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
}

type Behaviour = "takes" | "hangs" | "refuses" | "overloaded";

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface WireSpan extends Pick<CollectedSpan, "traceId" | "spanId" | "parentSpanId" | "traceState" | "name" | "kind"> {
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly status?: { readonly code: number };
}

interface Body {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

/** Stands in for an OpenTelemetry collector: takes OTLP over HTTP, in its JSON form, and keeps what came. */
export class OtlpCollector {
  readonly endpoint: string;
  readonly spans: CollectedSpan[] = [];
  readonly resources: Readonly<Record<string, unknown>>[] = [];
  readonly headers: IncomingMessage["headers"][] = [];
  /** Everything that was sent, as it came. */
  raw = "";
  requests = 0;
  behaviour: Behaviour = "takes";

  private constructor(port: number) {
    this.endpoint = `http://127.0.0.1:${port}`;
  }

  static async start(port = 0): Promise<OtlpCollector> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    const collector = new OtlpCollector((server.address() as AddressInfo).port);
    server.on("request", (request, response) => void collector.receive(request, response));
    onTestFinished(
      () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    );
    return collector;
  }

  of(traceId: string): CollectedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    this.headers.push(request.headers);
    const text = await wholeBody(request);
    if (text === undefined) return;
    if (this.behaviour === "hangs") return;
    if (this.behaviour !== "takes") return void response.writeHead(this.behaviour === "refuses" ? 400 : 503).end();
    if (request.method !== "POST" || request.url !== "/v1/traces") return void response.writeHead(404).end();
    this.raw += text;
    for (const { resource, scopeSpans } of (JSON.parse(text) as Body).resourceSpans) {
      this.resources.push(toRecord(resource.attributes));
      this.spans.push(...scopeSpans.flatMap(({ spans }) => spans.map(toSpan)));
    }
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  }
}

function toSpan({ startTimeUnixNano, endTimeUnixNano, attributes, status, ...span }: WireSpan): CollectedSpan {
  return {
    ...span,
    startMs: Number(BigInt(startTimeUnixNano) / 1000n) / 1000,
    endMs: Number(BigInt(endTimeUnixNano) / 1000n) / 1000,
    attributes: toRecord(attributes),
    isError: status?.code === 2,
  };
}

function toRecord(attributes: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
