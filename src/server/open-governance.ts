import { join } from "node:path";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { type ApprovalService, localApprovals } from "../governance/approval/approval-service.ts";
import { Approvals } from "../governance/approval/approvals.ts";
import { Governor } from "../governance/governor.ts";
import { Admissions } from "../governance/store/admissions.ts";
import { openStoreAndLedger, type StoreAndLedger } from "../governance/store/open-governance-store.ts";
import { PauseFiles } from "../governance/pause-files.ts";
import { Pauses, EVERYBODY, type Pause } from "../governance/pauses.ts";
import { type PolicySource, PolicyWatch } from "../governance/policy/policy-source.ts";
import type { Governance } from "../call/governed-work.ts";
import { type ActRecord, OperatorActs } from "../call/operator-acts.ts";
import { RunningCalls } from "../call/running-calls.ts";
import { STOP_GRACE_MS } from "../call/watched-run.ts";
import type { Alerts } from "../telemetry/alerts.ts";
import { CallsInFlight } from "../telemetry/calls-in-flight.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Bounds, toBoundedJson } from "../governance/ledger/bounded-json.ts";
import { sandboxFacts } from "../call/ledger-facts.ts";
import { createRedactor, hiding } from "../telemetry/redact.ts";
import { OwlError } from "../errors/owl-error.ts";

export interface OpenGovernanceOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Where the configuration came from, to read it again. */
  readonly loaded?: Pick<LoadedConfig, "read" | "reload"> | undefined;
  readonly alerts: Alerts;
}

/** Opens policy, store, approvals and ledger, in this order; closes them in reverse. */
export async function openGovernance(options: OpenGovernanceOptions): Promise<Governance> {
  const { config, logger, loaded, alerts } = options;
  const { governance } = config;
  const policy = await PolicyWatch.open({ origin: governance, logger, loaded });
  const { source } = policy;
  const inFlight = new CallsInFlight();
  const { store, ledger } = await openRecord(options, { source, inFlight });
  const approvals = new Approvals({ timeoutMs: governance.approvalTimeoutSeconds * 1000 });
  const running = new RunningCalls();
  let pauses: Pauses | undefined;
  let service: ApprovalService | undefined;
  try {
    const opened = (service = await openApprovals(config, { approvals, logger }));
    const paused = (pauses = await openPauses(config, logger));
    paused.onChange((begun) => cancelPaused({ approvals, running }, begun));
    const { failOpen } = governance;
    const calls = new Admissions({ store, ledger });
    const governor = new Governor({ source, calls, approvals, pauses: paused, logger, alerts, failOpen });
    return {
      acts: openActs({ ledger, governor, source, logger }),
      governor,
      ledger,
      inFlight,
      source,
      running,
      approvals: opened,
      reload: () => policy.reload(),
      watch() {
        policy.start();
        paused.watch();
      },
      async close() {
        policy.stop();
        approvals.close();
        await opened.close();
        await running.whenEmpty(STOP_GRACE_MS);
        await ledger.close();
        await paused.close();
      },
    };
  } catch (error) {
    await service?.close();
    await pauses?.close();
    await ledger.close();
    throw error;
  }
}

function openRecord(
  { config, logger, alerts }: OpenGovernanceOptions,
  { source, inFlight }: { readonly source: PolicySource; readonly inFlight: CallsInFlight },
): Promise<StoreAndLedger> {
  const timeZone = (): string => source.current.config.timeZone;
  const { leaseSeconds } = config.limits;
  return openStoreAndLedger({
    config,
    dataFolder: config.sandbox.root,
    logger,
    alerts,
    inFlight,
    timeZone,
    leaseSeconds,
  });
}

/** Where it is on record what operators do, and when the policy changes. */
function openActs({
  source,
  logger,
  ...record
}: ActRecord & Pick<Governance, "source"> & Pick<OpenGovernanceOptions, "logger">): OperatorActs {
  const acts = new OperatorActs(record, logger);
  source.onChange((replaced) => acts.noteOwn("policy.change", { revision: source.current.revision, replaced }));
  return acts;
}

/** In the store that servers share, or else in files of the data folder: what cannot be asked for there must not be forgotten. */
async function openPauses({ store, sandbox }: Config, logger: Logger): Promise<Pauses> {
  const files = new PauseFiles(join(sandbox.root, "paused"));
  if (store.url === "") return Pauses.open(files, logger);
  const { PostgresPauses } = await import("../governance/postgres-pauses.ts");
  const shared = await PostgresPauses.open(store.url);
  try {
    await shared.takeOver(files);
    return await Pauses.open(shared, logger);
  } catch (error) {
    await shared.close();
    throw error;
  }
}

const SHOWN: Bounds = { maxChars: 8000, maxTextChars: 4000 };

/** What waits on one of several servers is decided at any of them. */
export async function openApprovals(
  { store, cluster, ledger }: Config,
  { approvals, logger }: { readonly approvals: Approvals; readonly logger: Logger },
): Promise<ApprovalService> {
  if (store.url === "" || cluster.key === "") return localApprovals(approvals);
  const [{ SharedApprovals }, { PostgresApprovals }] = await Promise.all([
    import("../governance/approval/shared-approvals.ts"),
    import("../governance/approval/postgres-approvals.ts"),
  ]);
  const redactor = createRedactor(ledger.redact);
  // As in the ledger: what others may read opens nothing.
  const shownArgs = (args: unknown): string =>
    toBoundedJson(args, hiding(redactor, sandboxFacts(args, undefined).secrets), SHOWN);
  const shared = await PostgresApprovals.open(store.url);
  return new SharedApprovals({ approvals, store: shared, clusterKey: cluster.key, shownArgs, logger });
}

export interface CancelParts {
  readonly approvals: Approvals;
  readonly running: RunningCalls;
}

/** Ends what runs or waits of clients whose pause says so, whichever server the pause began on. */
export function cancelPaused({ approvals, running }: CancelParts, begun: readonly Pause[]): void {
  for (const { client, by, cancel } of begun) {
    if (cancel !== true) continue;
    const isMeant = (principal: string): boolean => client === EVERYBODY || principal === client;
    for (const { id, principal } of approvals.list()) {
      if (isMeant(principal)) approvals.deny(id, by, "the client was paused");
    }
    for (const call of running) {
      if (!isMeant(call.call.caller.principal.id)) continue;
      call.stop(
        new OwlError("cancelled", "an operator has paused your calls, and ended this one", {
          hint: "stop, and go on when the operator has resumed them",
        }),
      );
    }
  }
}
