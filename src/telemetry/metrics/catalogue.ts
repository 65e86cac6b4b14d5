export interface MetricFacts {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds. Only for histograms. */
  readonly buckets?: readonly number[];
}

/** From the duration of a short call to the default timeout of a tool. */
const CALL_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const DISK_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
/** From a client that disconnects at once to one that stays connected for a day. */
const SESSION_SECONDS = [1, 5, 15, 60, 300, 900, 3600, 14_400, 43_200, 86_400];
/** A warm sandbox returns its first result within a millisecond. */
const FIRST_RESULT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const START_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * All metrics. Names and labels of requests follow the OpenTelemetry conventions for MCP, in the spelling of
 * Prometheus. The table in the documentation is generated from this.
 */
export const METRICS = {
  requests: {
    name: "mcp_server_operation_duration_seconds",
    type: "histogram",
    help: "MCP requests and how long they took, by method. network_transport is tcp or, over stdio, pipe. error_type is empty when all went well, tool_error for a failed result, otherwise the kind of the error.",
    labels: ["mcp_method_name", "gen_ai_tool_name", "mcp_protocol_version", "network_transport", "error_type"],
    buckets: CALL_SECONDS,
  },
  sessionSeconds: {
    name: "mcp_server_session_duration_seconds",
    type: "histogram",
    help: "How long sessions lasted that began with a handshake, told when they end. Revisions since 2026-07-28 have none.",
    labels: ["mcp_protocol_version", "network_transport"],
    buckets: SESSION_SECONDS,
  },
  calls: {
    name: "owlclaw_calls_total",
    type: "counter",
    help: "Calls of tools, reads of resources and the like, by what became of them.",
    labels: ["kind", "tool", "outcome"],
  },
  callSeconds: {
    name: "owlclaw_tool_call_duration_seconds",
    type: "histogram",
    help: "How long calls of tools took, from the request to the record on disk.",
    labels: ["tool"],
    buckets: CALL_SECONDS,
  },
  errors: {
    name: "owlclaw_errors_total",
    type: "counter",
    help: "Calls that failed or were refused, by the kind of the error.",
    labels: ["kind"],
  },
  refusals: {
    name: "owlclaw_governance_refusals_total",
    type: "counter",
    help: "Calls that governance refused, by the rule that did.",
    labels: ["rule"],
  },
  loginsRefused: {
    name: "owlclaw_logins_refused_total",
    type: "counter",
    help: "HTTP requests whose token was missing or refused, by the reason. The log has the address of each client.",
    labels: ["reason"],
  },
  cost: {
    name: "owlclaw_cost_units_total",
    type: "counter",
    help: "What calls have cost, in the units of the policy's budgets.",
    labels: [],
  },
  budgetUsed: {
    name: "owlclaw_budget_used_ratio",
    type: "gauge",
    help: "Share of a monthly budget that is spent or held, by the rule that sets it: that of the caller who has used most, among the last 200 callers who paid.",
    labels: ["rule"],
  },
  egress: {
    name: "owlclaw_egress_bytes_total",
    type: "counter",
    help: "Bytes that sandboxes moved over their network during calls, both ways.",
    labels: [],
  },
  ledgerSeconds: {
    name: "owlclaw_ledger_append_duration_seconds",
    type: "histogram",
    help: "How long calls waited for their record to be on disk.",
    labels: [],
    buckets: DISK_SECONDS,
  },
  traceSpans: {
    name: "owlclaw_trace_spans_total",
    type: "counter",
    help: "Spans of traces that a collector took, and those that were dropped since it did not.",
    labels: ["outcome"],
  },
  createSeconds: {
    name: "owlclaw_sandbox_create_duration_seconds",
    type: "histogram",
    help: "How long it took until a new sandbox was ready. warm is true for those that waited in the pool.",
    labels: ["template", "warm"],
    buckets: START_SECONDS,
  },
  firstResultSeconds: {
    name: "owlclaw_sandbox_first_result_duration_seconds",
    type: "histogram",
    help: "How long the first result out of a new sandbox took: its start, and the first thing done in it.",
    labels: ["template", "warm"],
    buckets: FIRST_RESULT_SECONDS,
  },
  refillSeconds: {
    name: "owlclaw_pool_refill_duration_seconds",
    type: "histogram",
    help: "How long it took to start and warm a sandbox for the pool.",
    labels: ["template"],
    buckets: START_SECONDS,
  },
  sandboxes: {
    name: "owlclaw_sandboxes",
    type: "gauge",
    help: "Sandboxes that are alive. state is pooled for those that wait in the pool.",
    labels: ["state", "runtime", "template"],
  },
  health: {
    name: "owlclaw_health_check_status",
    type: "gauge",
    help: "Whether a dependency is well: 1, low or late: 0.5, or down: 0, as /health says.",
    labels: ["check"],
  },
  buildInfo: {
    name: "owlclaw_build_info",
    type: "gauge",
    help: "Always 1; the labels say what runs.",
    labels: ["version", "node_version"],
  },
  loopDelay: {
    name: "nodejs_eventloop_delay_seconds",
    type: "gauge",
    help: "How late the event loop was since the last look, as mean, p50, p99 and max.",
    labels: ["stat"],
  },
  heapUsed: {
    name: "nodejs_heap_size_used_bytes",
    type: "gauge",
    help: "Memory that JavaScript objects take.",
    labels: [],
  },
  residentMemory: {
    name: "process_resident_memory_bytes",
    type: "gauge",
    help: "Memory of the server's process, without its sandboxes.",
    labels: [],
  },
  cpuSeconds: {
    name: "process_cpu_seconds_total",
    type: "counter",
    help: "Processor time of the server's process, without its sandboxes.",
    labels: [],
  },
  openFiles: {
    name: "process_open_fds",
    type: "gauge",
    help: "File descriptors that the server's process has open.",
    labels: [],
  },
  startTime: {
    name: "process_start_time_seconds",
    type: "gauge",
    help: "When the server's process started, in seconds since the epoch.",
    labels: [],
  },
} as const satisfies Readonly<Record<string, MetricFacts & { readonly name: string }>>;
