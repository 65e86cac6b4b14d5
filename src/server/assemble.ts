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
import { type Alerts, createAlerts } from "../telemetry/alerts.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Metrics } from "../telemetry/metrics/metrics.ts";
import type { OperatorService } from "../transport/http/operator-api.ts";
import type { WorkspaceFiles } from "../call/workspace-files.ts";
import type { DashboardSources } from "./dashboard-routes.ts";
import type { EarlyWorker } from "../handlers/workers/launch-process.ts";
import { Operations } from "./operations.ts";
import { openObservation, type OpenTracing, type TracingParts } from "./observation.ts";
import type { Governance } from "../call/governed-work.ts";
import type { Cluster, OpenCluster, SharingOptions } from "./open-cluster.ts";
import type { OpenRuntime } from "../sandbox/open-runtime.ts";
import type { OperatorSandboxes } from "../operator/sandbox-service.ts";
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
    | { readonly desk: OperatorService; readonly ledger: Ledger; readonly acts: OperatorActs }
    | undefined;
  /** The claim that names groups, in the policy in force. */
  readonly groupsClaim: () => string;
  /** What operators see: to be opened for servers that stay. */
  readonly operations: Operations;
  /** What the page for operators asks for. */
  dashboardRoutes(): Promise<readonly ApiRoute[]>;
  /** Brings up what calls need, before the door opens. */
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
  /** A process for handlers that is under way already. */
  readonly earlyWorker?: EarlyWorker;
}

const SERVER_INFO = { name: "owlclaw", title: "OwlClaw", version: PACKAGE_VERSION };

/** Wires everything behind the transports. What is started here is stopped by `close`, in reverse. */
export async function assemble(options: AssembleOptions): Promise<Assembly> {
  const { config, logger } = options;
  const [registry, changes] = [new Registry(), new Changes()];
  const metrics = config.telemetry.metrics ? new Metrics() : undefined;
  const tracing = await traceIfWanted({ config, logger, registry, metrics });
  const sharing = await openShared(options, { changes, tracer: tracing.tracer });
  const cluster = sharing?.cluster;
  const alerts = createAlerts({ webhook: config.alerts.webhook, logger });
  const seen = seenOf(config);
  const parts = { ...options, ...seen, ...tracing, registry, changes, homes: cluster?.homes, sharing, metrics, alerts };
  const { governance: opened, capabilities } = await openParts(parts);
  const { sandboxes, servesSkills, skillTexts } = capabilities;
  const observed = { config, logger, registry, metrics, sandboxes, governance: opened, ...seen };
  const { calls, requests } = openObservation(observed);
  const governance = opened && { ...opened, observer: calls };
  const pipeline = new Pipeline({ registry, governance, skillTexts, ...callLimits(config) });
  const shared = { stateKey: await stateKeyOf(config), taskHomes: cluster?.tasks, usedStates: cluster?.usedStates };
  const watched = { watch: requests, tracing: tracing.requests };
  const mcp = new Mcp({ pipeline, changes, logger, ...toldOf(config, servesSkills), ...watched, ...shared });
  shared.taskHomes?.serveWith((message) => actForOther(mcp, message));
  const unfollow = governance?.governor.onPolicyChange(() => tellOfLists(changes));
  const looked = { config, mcp, governance, sandboxes };
  const operations = new Operations({ ...looked, logger, metrics, alerts });
  return {
    mcp,
    files: filesOf(sandboxes, cluster),
    operator: sandboxes?.operator,
    cluster,
    operators: governance && { desk: deskOf(governance), ledger: governance.ledger, acts: governance.acts },
    groupsClaim: () => governance?.source.current.config.groupsClaim ?? config.governance.groupsClaim,
    operations,
    dashboardRoutes: () => routesFor({ ...looked, ...seen, operations, capabilities }),
    start: () => capabilities.start(),
    opened: () => capabilities.opened(),
    refresh: async () => {
      await governance?.reload();
      await capabilities.refresh();
    },
    async close() {
      await operations.close();
      await capabilities.stopWatching();
      unfollow?.();
      mcp.close();
      await capabilities.close();
      await governance?.close();
      await sharing?.close();
      await tracing.close();
    },
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

/** What changes beside calls is in the ledger, too. */
function recordChanges(acts: OperatorActs, capabilities: Capabilities): void {
  const { sandboxes } = capabilities;
  if (sandboxes !== undefined) sandboxes.operator.record = (act) => acts.record(act);
  capabilities.onHandlersChanged((files) => acts.noteOwn("handler.change", { files }));
}

/** What people who look on can see later. A witness stands by only where there is a page to look at. */
function seenOf({
  dashboard,
}: Config): Pick<DashboardSources, "activity" | "stages"> & Pick<CapabilityOptions, "sandboxObserver"> {
  const activity = new ActivityLog();
  return { activity, stages: new RecentStages(), sandboxObserver: dashboard.enabled ? activity : undefined };
}

function toldOf({ mode }: Config, servesSkills: boolean): Pick<Mcp, "serverInfo" | "servesSkills" | "withStack"> {
  return { serverInfo: SERVER_INFO, servesSkills, withStack: mode === "development" };
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

/** What is there before governance. */
interface PartsBefore {
  readonly sharing: OpenCluster | undefined;
  readonly alerts: Alerts;
}

interface Parts {
  readonly governance: Governance | undefined;
  readonly capabilities: Capabilities;
}

/** Governance is opened beside everything else, since disks take their time; when one of the two fails, the other is closed. */
async function openParts(options: AssembleOptions & CapabilityOptions & PartsBefore): Promise<Parts> {
  const { isGoverned = true } = options;
  const [opened, served] = await Promise.allSettled([
    isGoverned ? openGoverned(options) : undefined,
    serveCapabilities(options),
  ]);
  if (served.status === "rejected") {
    if (opened.status === "fulfilled") await opened.value?.close();
    await options.sharing?.close();
    throw served.reason;
  }
  if (opened.status === "rejected") {
    await served.value.stopWatching();
    await served.value.close();
    await options.sharing?.close();
    throw opened.reason;
  }
  if (opened.value !== undefined) recordChanges(opened.value.acts, served.value);
  return { governance: opened.value, capabilities: served.value };
}

async function openGoverned(options: AssembleOptions & PartsBefore): Promise<Governance> {
  const { openGovernance } = await import("./open-governance.ts");
  return openGovernance(options);
}

async function openShared(
  { config, logger, isGoverned = true }: AssembleOptions,
  shared: Pick<SharingOptions, "changes" | "tracer">,
): Promise<OpenCluster | undefined> {
  if (config.store.url === "" || !isGoverned) return undefined;
  const { openSharing } = await import("./open-cluster.ts");
  return openSharing({ config, logger, ...shared });
}

/** With a key in common, one server continues what a client began at another. */
async function stateKeyOf({ cluster }: Config): Promise<Buffer | undefined> {
  return cluster.key === "" ? undefined : (await import("../cluster/forward-seal.ts")).stateKeyOf(cluster.key);
}

/** Of sandboxes here, and of those on other servers. */
function filesOf(sandboxes: Capabilities["sandboxes"], cluster: Cluster | undefined): WorkspaceFiles | undefined {
  if (sandboxes === undefined) return undefined;
  return cluster?.files.door(sandboxes.files) ?? sandboxes.files;
}

function deskOf(governance: Governance): OperatorService {
  return {
    approvals: () => governance.desk.list(),
    decide: async (decision) => {
      const { decideApproval } = await import("../operator/operator-requests.ts");
      return decideApproval(governance, { ...decision, transport: "http" });
    },
    stats: (filter) => governance.ledger.reader.stats(filter),
  };
}
