import { join } from "node:path";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { Approvals } from "../governance/approval/approvals.ts";
import { Governor } from "../governance/governor.ts";
import type { LimitStore } from "../governance/limits/limit-store.ts";
import type { LimitEngine } from "../governance/limits/shared/limit-engine.ts";
import { SharedLimitStore } from "../governance/limits/shared/shared-limit-store.ts";
import { SqliteLimitStore } from "../governance/limits/sqlite-limit-store.ts";
import { Pauses } from "../governance/pauses.ts";
import { PolicyError } from "../governance/policy/policy-error.ts";
import { PolicySource } from "../governance/policy/policy-source.ts";
import { openLedger } from "../ledger/open-ledger.ts";
import type { GovernanceParts } from "../pipeline/governed-call.ts";
import { RunningCalls } from "../pipeline/running-calls.ts";
import type { Alerts } from "../telemetry/alerts.ts";
import { CallsInFlight } from "../telemetry/calls-in-flight.ts";
import type { Logger } from "../telemetry/logger.ts";
import { lookAtFiles } from "../watching/look-at-files.ts";

export interface OpenGovernance extends GovernanceParts {
  readonly source: PolicySource;
  readonly running: RunningCalls;
  /** Follows the files that the policy comes from. */
  watch(): void;
  /** Reads them now. What is wrong is logged, and the policy stays. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

export interface OpenGovernanceOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Where the configuration came from, to read it again. */
  readonly loaded?: Pick<LoadedConfig, "file" | "reload"> | undefined;
  /** Where calls are counted together with other servers. */
  readonly engine?: LimitEngine | undefined;
  readonly alerts: Alerts;
}

/** Opens policy, limits, approvals and ledger, in this order; closes them in reverse. */
export async function openGovernance(options: OpenGovernanceOptions): Promise<OpenGovernance> {
  const { config, logger, loaded, alerts } = options;
  const { governance, sandbox } = config;
  const source = await PolicySource.open({ origin: governance, logger }).catch((error: unknown) => {
    throw error instanceof PolicyError ? new Error(`the policy cannot be used:\n${error.message}`) : error;
  });
  const pauses = new Pauses(join(sandbox.root, "paused"), logger);
  const inFlight = new CallsInFlight();
  const limits = openLimits(options, { source, inFlight });
  const approvals = new Approvals({ timeoutMs: governance.approvalTimeoutSeconds * 1000 });
  try {
    const ledger = await openLedger({ config, dataFolder: sandbox.root, logger, alerts, inFlight });
    const { failOpen } = governance;
    const governor = new Governor({ source, limits, approvals, pauses, logger, alerts, failOpen });
    const watched = [governance.policyFile, loaded?.file ?? ""].filter((file) => file !== "");
    const reload = (): Promise<void> =>
      source.reload(async () => (await loaded?.reload())?.config.governance ?? governance);
    let stopLooking: (() => void) | undefined;
    return {
      governor,
      ledger,
      inFlight,
      source,
      running: new RunningCalls(),
      reload,
      watch() {
        stopLooking = lookAtFiles(watched, () => void reload());
        pauses.watch();
      },
      async close() {
        pauses.close();
        stopLooking?.();
        approvals.close();
        await ledger.close();
        await limits.close();
      },
    };
  } catch (error) {
    await limits.close();
    throw error;
  }
}

function openLimits(
  { config, engine }: OpenGovernanceOptions,
  { source, inFlight }: { readonly source: PolicySource; readonly inFlight: CallsInFlight },
): LimitStore {
  const timeZone = (): string => source.current.config.timeZone;
  if (engine === undefined) {
    return new SqliteLimitStore({ path: join(config.sandbox.root, "limits.db"), timeZone, inFlight });
  }
  return new SharedLimitStore({ engine, timeZone, leaseMs: config.limits.leaseSeconds * 1000 });
}
