import { z } from "zod";
import { fieldFacts } from "./field.ts";

export const logging = z
  .strictObject({
    level: z
      .enum(["debug", "info", "warning", "error"])
      .default("info")
      .describe("Lines below this level are not written. A change in the file counts at once."),
    format: z
      .enum(["json", "pretty"])
      .default("json")
      .describe("Form of log lines on stderr. On a terminal, pretty unless it is set."),
    file: z
      .string()
      .default("")
      .describe("File that gets the log too, as JSON lines. Empty: none.")
      .register(fieldFacts, { path: "file" }),
    fileMaxBytes: z
      .int()
      .min(10_000)
      .max(10_000_000_000)
      .default(10_000_000)
      .describe("A log file that would grow beyond this is moved aside, and a new one begins."),
    fileKeep: z.int().min(0).max(100).default(5).describe("How many older log files stay."),
  })
  .prefault({})
  .describe("Log lines on stderr and in a file.");

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const HEADER_VALUE = /^[\x20-\x7e]{0,4096}$/;

/** The URL must contain neither a user nor a query: tokens belong in `headers`, which are masked. */
function isCollectorUrl(text: string): boolean {
  if (text === "") return true;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) return false;
  return url.username === "" && url.password === "" && url.search === "" && url.hash === "";
}

/** A host and a port. An IPv6 address is in brackets. */
const ADDRESS = /^(?:\[[0-9a-fA-F:.]{2,45}\]|[\w.-]{1,253}):\d{1,5}$/;

const otlp = z
  .strictObject({
    endpoint: z
      .string()
      .refine(isCollectorUrl, "must be an http:// or https:// URL without a query, such as http://localhost:4318")
      .default("")
      .describe(
        "OpenTelemetry collector that gets traces, by OTLP over HTTP; /v1/traces is added. Empty: no tracing. Also telemetry.otlpEndpoint.",
      )
      .register(fieldFacts, { env: ["OTEL_EXPORTER_OTLP_ENDPOINT"], alias: "telemetry.otlpEndpoint" }),
    headers: z
      .record(z.string().regex(HEADER_NAME, "must be the name of a header"), z.string().regex(HEADER_VALUE))
      .default({})
      .describe("Headers for the collector, such as a token.")
      .register(fieldFacts, { secret: true, env: ["OTEL_EXPORTER_OTLP_HEADERS"] }),
    serviceName: z
      .string()
      .min(1)
      .max(128)
      .default("owlclaw")
      .describe("Name of this server in traces.")
      .register(fieldFacts, { env: ["OTEL_SERVICE_NAME"] }),
    sampleRatio: z
      .number()
      .min(0)
      .max(1)
      .default(1)
      .describe("Share of the traces that begin here that is kept. A client that sends a trace decides for its own.")
      .register(fieldFacts, { env: ["OTEL_TRACES_SAMPLER_ARG"] }),
  })
  .prefault({})
  .describe("Traces for OpenTelemetry.");

export const telemetry = z
  .strictObject({
    metrics: z.boolean().default(true).describe("Counts calls, times and resources, and shows them at /metrics."),
    metricsAddress: z
      .string()
      .refine((text) => text === "" || ADDRESS.test(text), "must be host:port, such as 127.0.0.1:9464")
      .default("")
      .describe("Address of a listener of their own for metrics; whoever reaches it may read them. Empty: none."),
    otlp,
  })
  .prefault({})
  .describe("What can be measured from outside.");
