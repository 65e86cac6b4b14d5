import type { Config } from "../config/schema.ts";
import type { ActivityLog } from "../dashboard/activity-log.ts";
import type { ApiRoute } from "../dashboard/api.ts";
import { ledgerRoutes } from "../dashboard/ledger-routes.ts";
import { liveRoutes } from "../dashboard/live-routes.ts";
import { NowBoard } from "../dashboard/now-board.ts";
import type { RecentStages } from "../dashboard/recent-stages.ts";
import { UsageSampler } from "../dashboard/usage-sampler.ts";
import type { Mcp } from "../protocol/mcp.ts";
import type { Operations } from "./operations.ts";
import type { OpenGovernance } from "./open-governance.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import type { Capabilities } from "./serve-capabilities.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";

export interface DashboardSources {
  readonly config: Config;
  readonly mcp: Mcp;
  readonly governance: OpenGovernance;
  readonly sandboxes: SandboxPart | undefined;
  readonly operations: Operations;
  readonly activity: ActivityLog;
  readonly stages: RecentStages;
  readonly capabilities: Capabilities;
}

/** Everything that the page asks for, from those who know it. */
export function dashboardRoutes(sources: DashboardSources): readonly ApiRoute[] {
  const { governance, stages } = sources;
  return [...liveRoutes(boardOf(sources)), ...ledgerRoutes(governance.ledger, stages)];
}

function boardOf({ config, governance, sandboxes, operations, activity }: DashboardSources): NowBoard {
  const { governor, running } = governance;
  const all = sandboxes?.layer.services.sandboxes;
  return new NowBoard({
    version: PACKAGE_VERSION,
    activity,
    running,
    usage: new UsageSampler(async (cellId) => all?.findCell(cellId)?.usage()),
    sandboxes: () => all?.listAll() ?? [],
    room: () => ({
      ready: [...(sandboxes?.layer.pooled().values() ?? [])].reduce((sum, count) => sum + count, 0),
      most: config.sandbox.maxTotal,
    }),
    approvals: () => governor.approvals.list(),
    pauses: () => governor.pauses.list(),
    health: () => operations.health.report(),
  });
}
