import { FORWARD_PATH } from "../../cluster/forward-connection.ts";
import type { LazyDashboard } from "./dashboard-listener.ts";
import type { HttpExchange } from "./exchange-io.ts";
import type { ForwardEndpoint } from "./forward-endpoint.ts";
import type { HealthEndpoint } from "./health-endpoint.ts";
import type { LedgerEndpoint } from "./ledger-endpoint.ts";
import type { LegacySse } from "./legacy-sse.ts";
import type { McpEndpoint } from "./mcp-endpoint.ts";
import { METRICS_PATH, type MetricsEndpoint } from "./metrics-endpoint.ts";
import type { OperatorApi } from "./operator-api.ts";
import type { OperatorSandboxesEndpoint } from "./operator-sandboxes.ts";
import type { Route, RouteRequest } from "./route-table.ts";
import type { SandboxFilesEndpoint } from "./sandbox-files.ts";
import type { SkillsEndpoint } from "./skills.ts";
import type { StatusEndpoint } from "./status-endpoint.ts";

/** What answers. Without a part, its routes do not exist. */
export interface Endpoints {
  readonly mcp: McpEndpoint;
  readonly sse: LegacySse;
  readonly status: StatusEndpoint;
  readonly health: HealthEndpoint;
  /** With auth on. */
  readonly metadata: StatusEndpoint | undefined;
  readonly metrics: MetricsEndpoint | undefined;
  readonly files: SandboxFilesEndpoint | undefined;
  readonly skills: SkillsEndpoint | undefined;
  readonly sandboxes: OperatorSandboxesEndpoint | undefined;
  readonly ledger: LedgerEndpoint | undefined;
  readonly operators: OperatorApi | undefined;
  readonly forwards: ForwardEndpoint | undefined;
  readonly dashboard: LazyDashboard | undefined;
}

type RouteFacts = Omit<Route, "serve">;
type Present<Name extends keyof Endpoints> = { readonly [Each in Name]: NonNullable<Endpoints[Each]> };

interface Row extends RouteFacts {
  /** The route, where its endpoints are there. */
  readonly of: (endpoints: Endpoints) => Route | undefined;
}

/** Every route of the server. docs/protocol.md shows this table. */
export const ROUTES: readonly Row[] = [
  row(["mcp"], {
    methods: ["POST"],
    path: "/mcp",
    role: "client",
    about: "messages in, answers out",
    serve: ({ mcp }, exchange) => mcp.post(exchange),
  }),
  row(["mcp", "status"], {
    methods: ["GET"],
    path: "/mcp",
    role: "client",
    about:
      "with `Accept: text/event-stream` and a session id: the session's stream, or a lost one after `Last-Event-ID`. Otherwise the server's status",
    serve: ({ mcp, status }, exchange) => (mcp.isForStream(exchange) ? mcp.get(exchange) : status.status(exchange)),
  }),
  row(["mcp"], {
    methods: ["DELETE"],
    path: "/mcp",
    role: "client",
    about: "ends a session",
    serve: ({ mcp }, exchange) => mcp.delete(exchange),
  }),
  row(["sse"], {
    methods: ["GET"],
    path: "/mcp/sse",
    role: "client",
    about: "the stream of the HTTP+SSE transport of 2024-11-05",
    serve: ({ sse }, exchange) => sse.open(exchange),
  }),
  row(["sse"], {
    methods: ["POST"],
    path: "/mcp/messages",
    role: "client",
    about: "messages of the HTTP+SSE transport",
    serve: ({ sse }, exchange, { query }) => sse.post(exchange, new URLSearchParams(query).get("sessionId")),
  }),
  row(["health"], {
    methods: ["GET", "HEAD"],
    path: "/health",
    role: "anyone",
    about: "the status of every dependency; 503 when a vital one is down: [operations.md](operations.md)",
    isAlwaysServed: true,
    serve: ({ health }, exchange) => health.all(exchange),
  }),
  row(["health"], {
    methods: ["GET", "HEAD"],
    path: "/health/live",
    role: "anyone",
    about: "200 while the process lives",
    isAlwaysServed: true,
    serve: ({ health }, exchange) => health.live(exchange),
  }),
  row(["health"], {
    methods: ["GET", "HEAD"],
    path: "/health/ready",
    role: "anyone",
    about: "200 while the server takes calls",
    isAlwaysServed: true,
    serve: ({ health }, exchange) => health.ready(exchange),
  }),
  row(["metadata"], {
    methods: ["GET"],
    path: "/.well-known/oauth-protected-resource",
    role: "anyone",
    about: "who issues tokens for this server (RFC 9728); with auth on",
    serve: ({ metadata }, exchange) => metadata.resourceMetadata(exchange),
  }),
  row(["metadata"], {
    methods: ["GET"],
    path: "/.well-known/oauth-protected-resource/mcp",
    role: "anyone",
    about: "the same",
    serve: ({ metadata }, exchange) => metadata.resourceMetadata(exchange),
  }),
  row(["metrics"], {
    methods: ["GET"],
    path: METRICS_PATH,
    role: "client",
    about:
      "metrics for Prometheus: for operators, and with auth off on loopback for everybody: [operations.md](operations.md)",
    serve: ({ metrics }, exchange) => metrics.send(exchange),
  }),
  row(["skills"], {
    methods: ["GET", "HEAD"],
    path: "/skills/{path...}",
    role: "client",
    about: "a file of a skill: [skills.md](skills.md)",
    serve: ({ skills }, exchange, request) => skills.send(exchange, request),
  }),
  row(["files"], {
    methods: ["GET", "HEAD"],
    path: "/api/sandboxes/{session_id}/files/{path...}",
    role: "client",
    about: "a file of the caller's sandbox: [sandboxes.md](sandboxes.md)",
    serve: ({ files }, exchange, request) => files.get(exchange, request),
  }),
  row(["files"], {
    methods: ["PUT"],
    path: "/api/sandboxes/{session_id}/files/{path...}",
    role: "client",
    about: "writes a file of the caller's sandbox",
    serve: ({ files }, exchange, request) => files.put(exchange, request),
  }),
  row(["operators"], {
    methods: ["GET"],
    path: "/api/stats",
    role: "client",
    about: "calls and costs: the caller's own, and everybody's for operators: [governance.md](governance.md)",
    serve: ({ operators }, exchange, request) => operators.stats(exchange, request),
  }),
  row(["sandboxes"], {
    methods: ["GET"],
    path: "/api/sandboxes",
    role: "operator",
    about: "all sandboxes of the server",
    serve: ({ sandboxes }, exchange) => sandboxes.list(exchange),
  }),
  row(["sandboxes"], {
    methods: ["DELETE"],
    path: "/api/sandboxes/{name}",
    role: "operator",
    about: "ends one of them",
    serve: ({ sandboxes }, exchange, request) => sandboxes.destroy(exchange, request),
  }),
  row(["operators"], {
    methods: ["GET"],
    path: "/api/approvals",
    role: "operator",
    about: "the calls that wait for an operator's approval",
    serve: ({ operators }, exchange) => operators.listApprovals(exchange),
  }),
  row(["operators"], {
    methods: ["POST"],
    path: "/api/approvals/{id}",
    role: "operator",
    about: "approves or denies one of them",
    serve: ({ operators }, exchange, request) => operators.decide(exchange, request),
  }),
  row(["ledger"], {
    methods: ["GET"],
    path: "/api/ledger",
    role: "operator",
    about: "rows of the ledger: [ledger.md](ledger.md)",
    serve: ({ ledger }, exchange, request) => ledger.list(exchange, request),
  }),
  row(["ledger"], {
    methods: ["GET"],
    path: "/api/ledger/export",
    role: "operator",
    about: "the ledger as JSON lines or CSV",
    serve: ({ ledger }, exchange, request) => ledger.export(exchange, request),
  }),
  row(["ledger"], {
    methods: ["GET"],
    path: "/api/ledger/verify",
    role: "operator",
    about: "whether the ledger is intact",
    serve: ({ ledger }, exchange, request) => ledger.verify(exchange, request),
  }),
  row(["ledger"], {
    methods: ["GET"],
    path: "/api/ledger/{seq}",
    role: "operator",
    about: "one row",
    serve: ({ ledger }, exchange, request) => ledger.row(exchange, request),
  }),
  row(["dashboard"], {
    methods: ["GET", "HEAD", "POST", "PUT"],
    path: "/dashboard",
    role: "page",
    about: "the dashboard: [dashboard.md](dashboard.md)",
    serve: ({ dashboard }, { request, response }, target) => dashboard.handle(request, response, target),
  }),
  row(["dashboard"], {
    methods: ["GET", "HEAD", "POST", "PUT"],
    path: "/dashboard/{path...}",
    role: "page",
    about: "its files and requests",
    serve: ({ dashboard }, { request, response }, target) => dashboard.handle(request, response, target),
  }),
  row(["forwards"], {
    methods: ["POST"],
    path: FORWARD_PATH,
    role: "server",
    about: "calls that another server of the cluster sends: [several-servers.md](several-servers.md)",
    serve: ({ forwards }, { request, response, release }) => forwards.post(request, response, release),
  }),
];

export function routesOf(endpoints: Endpoints): readonly Route[] {
  return ROUTES.flatMap((each) => each.of(endpoints) ?? []);
}

function row<Name extends keyof Endpoints>(
  needs: readonly Name[],
  {
    serve,
    ...facts
  }: RouteFacts & {
    readonly serve: (endpoints: Present<Name>, exchange: HttpExchange, request: RouteRequest) => void | Promise<void>;
  },
): Row {
  return {
    ...facts,
    of: (endpoints) =>
      arePresent(endpoints, needs)
        ? { ...facts, serve: (exchange, request) => serve(endpoints, exchange, request) }
        : undefined,
  };
}

function arePresent<Name extends keyof Endpoints>(
  endpoints: Endpoints,
  names: readonly Name[],
): endpoints is Endpoints & Present<Name> {
  return names.every((name) => endpoints[name] !== undefined);
}
