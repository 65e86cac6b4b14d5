import type { Config } from "../config/schema.ts";
import type { ActivityLog } from "../operator/activity-log.ts";
import type { ApiRoute } from "../operator/api.ts";
import { type ApprovalSources, approvalRoutes } from "../operator/approval-routes.ts";
import { browserRoutes } from "../operator/browser-routes.ts";
import { ledgerRoutes } from "../operator/ledger-routes.ts";
import { liveRoutes } from "../operator/event-bus.ts";
import { CurrentState, UsageSampler } from "../operator/current-state.ts";
import { pauseRoutes, pauseService } from "../operator/pause-routes.ts";
import { namedClients, policyRoutes, type PolicySources } from "../operator/policy-routes.ts";
import type { RecentStages } from "../operator/recent-stages.ts";
import { OperatorSandboxService, type OperatorSandboxServiceOptions } from "../operator/sandbox-service.ts";
import { sandboxFileRoutes } from "../operator/sandbox-file-routes.ts";
import { sandboxRoutes } from "../operator/sandbox-routes.ts";
import { spendRoutes, type SpendSources } from "../operator/spend-routes.ts";
import { takeoverRoutes } from "../operator/takeover-routes.ts";
import { Takeovers } from "../operator/takeovers.ts";
import { toolRoutes, type ToolSources } from "../operator/tool-routes.ts";
import { HANDLER_SOURCE } from "../handlers/handler-library.ts";
import type { Mcp } from "../mcp/mcp.ts";
import type { Health } from "../telemetry/health.ts";
import type { Reload } from "../governance/policy/policy-source.ts";
import type { Governance } from "../call/governed-work.ts";
import { decideApproval } from "../operator/operator-requests.ts";
import { PACKAGE_VERSION } from "../config/package-version.ts";
import { NamedCalls } from "../operator/policy-service.ts";
import type { Capabilities } from "./serve-capabilities.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";

export interface DashboardSources {
  readonly config: Config;
  readonly mcp: Mcp;
  readonly governance: Governance;
  readonly sandboxes: SandboxPart | undefined;
  readonly health: Health;
  /** What came of the last read of the configuration. */
  readonly lastReload: () => Reload | undefined;
  readonly activity: ActivityLog;
  readonly stages: RecentStages;
  readonly capabilities: Capabilities;
}

/** Everything that the page asks for, from those who know it. */
export function dashboardRoutes(sources: DashboardSources): readonly ApiRoute[] {
  const { governance, stages } = sources;
  const state = currentStateOf(sources);
  return [
    ...liveRoutes(state),
    ...sandboxParts(sources, state),
    ...ledgerRoutes({
      reader: governance.ledger.reader,
      stages,
      record: (act) => governance.acts.record({ ...act, transport: "http" }),
      recordRead: (act) => governance.acts.recordRead({ ...act, transport: "http" }),
    }),
    ...spendRoutes(spendSources(governance)),
    ...approvalRoutes(approvalSources(sources)),
    ...policyRoutes(policySources(sources)),
    ...toolRoutes(toolSources(sources)),
    ...pauseRoutes(pauseService(governance, "http")),
  ];
}

function sandboxParts(
  { config, sandboxes, governance, activity }: DashboardSources,
  state: CurrentState,
): readonly ApiRoute[] {
  if (sandboxes === undefined) return [];
  const all = sandboxes.layer.services.sandboxes;
  const workspacePath = config.sandbox.workspace;
  const record: OperatorSandboxServiceOptions["record"] = (act) =>
    governance.acts.record({ ...act, transport: "http" });
  const service = new OperatorSandboxService({ sandboxes: all, activity, record });
  const takeovers = new Takeovers(service);
  return [
    ...sandboxRoutes({ service, now: (instanceId) => state.sandbox(instanceId), workspacePath }),
    ...takeoverRoutes(service, takeovers),
    ...browserRoutes(service, takeovers),
    ...sandboxFileRoutes({ service, files: sandboxes.files, workspacePath }),
  ];
}

function spendSources({ ledger, governor, source }: Governance): SpendSources {
  return {
    reader: ledger.reader,
    governor,
    timeZone: () => source.current.config.timeZone,
    namedClients: () => namedClients(source.current),
  };
}

function approvalSources({ governance, sandboxes }: DashboardSources): ApprovalSources {
  return {
    list: () => governance.approvals.list(),
    decide: (decision) => decideApproval(governance, { ...decision, transport: "http" }),
    sandboxes: sandboxes?.layer.services.sandboxes,
    callerOf: ({ traceId, principal }) => {
      for (const { call } of governance.running)
        if (call.traceId === traceId && call.caller.principal.id === principal) return call.caller;
      return undefined;
    },
  };
}

function policySources({ config, governance, mcp, sandboxes, lastReload }: DashboardSources): PolicySources {
  const { registry } = mcp.pipeline;
  const { source, ledger, governor } = governance;
  return {
    policy: () => source.current,
    registry,
    named: new NamedCalls(registry, config),
    reader: ledger.reader,
    owners: () => sandboxes?.layer.services.sandboxes.listAll().map(({ ownerId }) => ownerId) ?? [],
    pauses: () => governor.pauses.list(),
    reloads: () => [source.lastReload, lastReload()].filter((reload) => reload !== undefined),
  };
}

function toolSources({ mcp, capabilities }: DashboardSources): ToolSources {
  return {
    mcp,
    handlers: () => mcp.pipeline.registry.toolsFrom(HANDLER_SOURCE),
    handlerProblems: () =>
      capabilities.handlerProblems.map(({ file, line, message, fix }) => ({
        file,
        severity: "error",
        message,
        ...(line !== undefined && { line }),
        ...(fix !== undefined && { fix }),
      })),
    skillProblems: () => capabilities.skillProblems.map(({ path, ...problem }) => ({ file: path, ...problem })),
  };
}

function currentStateOf({ config, governance, sandboxes, health, activity }: DashboardSources): CurrentState {
  const { governor, running, approvals } = governance;
  const all = sandboxes?.layer.services.sandboxes;
  return new CurrentState({
    version: PACKAGE_VERSION,
    activity,
    running,
    usage: new UsageSampler(async (instanceId) => all?.findByInstance(instanceId)?.usage()),
    sandboxes: () => all?.listAll() ?? [],
    room: () => ({
      ready: [...(sandboxes?.layer.pooled().values() ?? [])].reduce((sum, count) => sum + count, 0),
      most: config.sandbox.maxTotal,
    }),
    approvals: () => approvals.known(),
    pauses: () => governor.pauses.list(),
    health: () => health.wholeReport(),
  });
}
