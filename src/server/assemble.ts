import { Registry, Changes } from "../capability/registry.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { PlannedVolume } from "../config/plan-volumes.ts";
import type { Config } from "../config/schema.ts";
import { ActivityLog } from "../operator/activity-log.ts";
import type { ApiRoute } from "../operator/api.ts";
import { RecentStages } from "../operator/recent-stages.ts";
import type { Ledger } from "../governance/ledger/ledger.ts";
import type { OperatorActs } from "../call/operator-acts.ts";
import { Pipeline, type PipelineOptions } from "../call/pipeline.ts";
import { Mcp } from "../mcp/mcp.ts";
import { actForOther } from "../mcp/methods/tasks.ts";
import { createAlerts, type WebhookAlerts } from "../telemetry/alerts.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Metrics } from "../telemetry/metrics/metrics.ts";
import type { OperatorService } from "../transport/http/operator-api.ts";
import type { WorkspaceFiles } from "../call/workspace-files.ts";
import type { DashboardSources } from "./dashboard-routes.ts";
import type { EarlyWorker } from "../handlers/workers/launch-process.ts";
import { followState } from "./operations.ts";
import { Health } from "../telemetry/health.ts";
import { LedgerCheck } from "../governance/ledger/ledger-check.ts";
import { type CertificateInUse, healthChecks } from "../operator/health-checks.ts";
import { type Observation, openObservation, type OpenTracing, type TracingParts } from "./observation.ts";
import type { Governance } from "../call/governed-work.ts";
import type { Cluster, ClusterOptions } from "./open-cluster.ts";
import type { OpenRuntime } from "../sandbox/open-runtime.ts";
import { CloseStack } from "../platform/close-stack.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";
import { OperatorSandboxes } from "../operator/sandbox-service.ts";
import { PACKAGE_VERSION } from "../config/package-version.ts";
import { type Capabilities, type CapabilityOptions, serveCapabilities } from "./serve-capabilities.ts";

export interface Assembly {
  readonly mcp: Mcp;
  /** Files of sandboxes, in and out. */
  readonly files: WorkspaceFiles | undefined;
  /** Everybody's sandboxes, for operators. */
  readonly operator: OperatorSandboxes | undefined;
  /** Other servers that share the load. */
  readonly cluster: Cluster | undefined;
  /** Ledger, statistics and approvals. */
  readonly operators:
    | { readonly service: OperatorService; readonly ledger: Ledger; readonly acts: OperatorActs }
    | undefined;
  /** The claim that names groups, in the policy in force. */
  readonly groupsClaim: () => string;
  readonly governance: Governance | undefined;
  readonly metrics: Metrics | undefined;
  readonly alerts: WebhookAlerts;
  readonly health: Health;
  /** Verifies the ledger from time to time, once it is started. */
  readonly ledgerCheck: LedgerCheck | undefined;
  /** The routes that the dashboard's page requests. */
  dashboardRoutes(lastReload: DashboardSources["lastReload"]): Promise<readonly ApiRoute[]>;
  /** Starts what calls need, before the server listens. */
  start(): Promise<void>;
  /** Begins what is left for the time after that. */
  opened(): void;
  /** Looks again at everything that may change while the server runs. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

export interface AssembleOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly openRuntime?: OpenRuntime | undefined;
  /** `sandbox.volumes`, with what is protected in them. */
  readonly volumes?: readonly PlannedVolume[] | undefined;
  /** Where the configuration came from, so that a changed policy can be read again. */
  readonly loaded?: Pick<LoadedConfig, "read" | "reload"> | undefined;
  /** false only in the benchmark that measures what governance costs. */
  readonly isGoverned?: boolean;
  /** Default: yes. */
  readonly withPool?: boolean;
  /** A process for handlers that was started already. */
  readonly earlyWorker?: EarlyWorker;
  /** The certificate that clients are shown. */
  readonly certificate?: (() => CertificateInUse | undefined) | undefined;
}

const SERVER_INFO = { name: "owlclaw", title: "OwlClaw", version: PACKAGE_VERSION };

/** Opens everything behind the transports. */
export function assemble(options: AssembleOptions): Promise<Assembly> {
  return CloseStack.opening((opened) => assembleOn(opened, options));
}

async function assembleOn(opened: CloseStack, options: AssembleOptions): Promise<Assembly> {
  const { config, logger } = options;
  const [registry, changes] = [new Registry(), new Changes()];
  const metrics = config.telemetry.metrics ? new Metrics() : undefined;
  const tracing = opened.add(await traceIfWanted({ config, logger, registry, metrics }));
  const { tracer } = tracing;
  const cluster = await openSharedCluster(opened, options, { changes, tracer });
  const alerts = createAlerts({ webhook: config.alerts.webhook, logger });
  const [activity, stages] = [new ActivityLog(), new RecentStages()];
  const sandboxObserver = config.dashboard.enabled ? activity : undefined;
  const { sandboxOwners } = cluster ?? {};
  const parts = { ...options, registry, changes, metrics, tracer, sandboxOwners, sandboxObserver };
  const { governance, capabilities } = await openParts(opened, parts, alerts);
  const { sandboxes } = capabilities;
  const observation = openObservation({ config, logger, registry, metrics, sandboxes, governance, stages });
  const mcp = opened.add(
    await openMcp({ config, logger, registry, changes, observation, tracing, cluster, governance, capabilities }),
  );
  cluster?.tasks.serveWith((message) => actForOther(mcp, message));
  if (governance !== undefined) opened.defer(governance.governor.onPolicyChange(() => tellOfLists(changes)));
  opened.defer(() => capabilities.stopWatching());
  const operator = sandboxes && operatorSandboxes(sandboxes, governance);
  const { health, ledgerCheck } = openHealth(options, { governance, operator, alerts });
  if (metrics !== undefined) followState(metrics, health, sandboxes);
  const sources = { config, mcp, governance, sandboxes, activity, stages, health, capabilities };
  return {
    mcp,
    files: filesOf(sandboxes, cluster),
    operator,
    cluster,
    governance,
    operators: governance && { service: operatorService(governance), ledger: governance.ledger, acts: governance.acts },
    metrics,
    alerts,
    health,
    ledgerCheck,
    groupsClaim: () => governance?.source.current.config.groupsClaim ?? config.governance.groupsClaim,
    dashboardRoutes: (lastReload) => routesFor({ ...sources, lastReload }),
    start: () => capabilities.start(),
    opened: () => capabilities.opened(),
    refresh: async () => {
      await governance?.reload();
      await capabilities.refresh();
    },
    close: () => opened.close(),
  };
}

/** Without governance nobody is known, so there is nothing to look at. */
async function routesFor({
  governance,
  ...sources
}: Omit<DashboardSources, "governance"> & {
  readonly governance: Governance | undefined;
}): Promise<readonly ApiRoute[]> {
  if (governance === undefined) return [];
  const { dashboardRoutes } = await import("./dashboard-routes.ts");
  return dashboardRoutes({ ...sources, governance });
}

interface McpParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly changes: Changes;
  readonly observation: Observation;
  readonly tracing: Partial<Pick<OpenTracing, "requests">>;
  readonly cluster: Cluster | undefined;
  readonly governance: Governance | undefined;
  readonly capabilities: Capabilities;
}

async function openMcp(parts: McpParts): Promise<Mcp> {
  const { config, logger, registry, changes, observation, tracing, cluster, governance, capabilities } = parts;
  const pipeline = new Pipeline({
    registry,
    governance: governance && { ...governance, observer: observation.calls },
    skillTexts: capabilities.skillTexts,
    ...callLimits(config),
  });
  return new Mcp({
    pipeline,
    changes,
    logger,
    serverInfo: SERVER_INFO,
    servesSkills: capabilities.servesSkills,
    withStack: config.mode === "development",
    watch: observation.requests,
    tracing: tracing.requests,
    stateKey: await stateKeyOf(config),
    taskHomes: cluster?.tasks,
    usedStates: cluster?.usedStates,
  });
}

interface HealthSources {
  readonly governance: Governance | undefined;
  readonly operator: OperatorSandboxes | undefined;
  readonly alerts: WebhookAlerts;
}

function openHealth(
  { config, logger, certificate }: AssembleOptions,
  { governance, operator, alerts }: HealthSources,
): { readonly health: Health; readonly ledgerCheck: LedgerCheck | undefined } {
  const { verifyHours: everyHours } = config.ledger;
  const ledgerCheck =
    governance === undefined || everyHours === 0
      ? undefined
      : new LedgerCheck({ ledger: governance.ledger, everyHours, logger });
  const checks = healthChecks({ config, governance, sandboxes: operator, ledgerCheck, alerts, certificate });
  return { health: new Health(checks), ledgerCheck };
}

function operatorSandboxes({ layer }: SandboxPart, governance: Governance | undefined): OperatorSandboxes {
  return new OperatorSandboxes({
    sandboxes: layer.services.sandboxes,
    health: () => layer.health(),
    record: governance && ((act) => governance.acts.record(act)),
  });
}

function callLimits({ tools }: Config): Pick<PipelineOptions, "timeoutMs" | "progressAfterMs" | "maxResultChars"> {
  return {
    timeoutMs: tools.timeoutSeconds * 1000,
    progressAfterMs: tools.progressAfterSeconds * 1000,
    maxResultChars: tools.maxResultChars,
  };
}

async function traceIfWanted(parts: TracingParts): Promise<Partial<OpenTracing> & Pick<OpenTracing, "close">> {
  if (parts.config.telemetry.otlp.endpoint === "") return { close: async () => undefined };
  const { openTracing } = await import("./observation.ts");
  return openTracing(parts);
}

/** Another policy may show other things. */
function tellOfLists(changes: Changes): void {
  for (const list of ["tools", "resources", "prompts"] as const) changes.listChanged(list);
}

interface Parts {
  readonly governance: Governance | undefined;
  readonly capabilities: Capabilities;
}

/** Opens governance beside the capabilities, since both wait for disks. Governance is closed after the capabilities. */
async function openParts(
  stack: CloseStack,
  options: AssembleOptions & CapabilityOptions,
  alerts: WebhookAlerts,
): Promise<Parts> {
  const [governed, served] = await Promise.allSettled([
    options.isGoverned === false ? undefined : openGoverned(options, alerts),
    serveCapabilities(options),
  ]);
  if (governed.status === "fulfilled" && governed.value !== undefined) stack.add(governed.value);
  if (served.status === "rejected") throw served.reason;
  stack.add(served.value);
  if (governed.status === "rejected") {
    stack.defer(() => served.value.stopWatching());
    throw governed.reason;
  }
  const [governance, capabilities] = [governed.value, served.value];
  if (governance !== undefined)
    capabilities.onHandlersChanged((files) => governance.acts.noteOwn("handler.change", { files }));
  return { governance, capabilities };
}

async function openGoverned({ config, logger, loaded }: AssembleOptions, alerts: WebhookAlerts): Promise<Governance> {
  const { openGovernance } = await import("./open-governance.ts");
  return openGovernance({ config, logger, loaded, alerts });
}

async function openSharedCluster(
  stack: CloseStack,
  { config, logger, isGoverned = true }: AssembleOptions,
  { changes, tracer }: Pick<ClusterOptions, "changes" | "tracer">,
): Promise<Cluster | undefined> {
  if (config.store.url === "" || !isGoverned) return undefined;
  const { openCluster } = await import("./open-cluster.ts");
  return openCluster(stack, { config, logger, changes, tracer });
}

/** With a key in common, one server continues what a client began at another. */
async function stateKeyOf({ cluster }: Config): Promise<Buffer | undefined> {
  return cluster.key === "" ? undefined : (await import("../cluster/forward-seal.ts")).stateKeyOf(cluster.key);
}

/** Of sandboxes here, and of those on other servers. */
function filesOf(sandboxes: Capabilities["sandboxes"], cluster: Cluster | undefined): WorkspaceFiles | undefined {
  if (sandboxes === undefined) return undefined;
  return cluster?.files.transfersFrom(sandboxes.files) ?? sandboxes.files;
}

function operatorService(governance: Governance): OperatorService {
  return {
    approvals: () => governance.approvals.list(),
    decide: async (decision) => {
      const { decideApproval } = await import("../operator/operator-requests.ts");
      return decideApproval(governance, { ...decision, transport: "http" });
    },
    stats: (filter) => governance.ledger.reader.stats(filter),
  };
}
