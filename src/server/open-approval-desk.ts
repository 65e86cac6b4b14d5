import type { Config } from "../config/schema.ts";
import { type ApprovalDesk, localDesk } from "../governance/approval/approval-desk.ts";
import type { Approvals } from "../governance/approval/approvals.ts";
import { type Bounds, toBoundedJson } from "../governance/ledger/bounded-json.ts";
import { sandboxFacts } from "../call/ledger-facts.ts";
import { hiding } from "../telemetry/hiding-redactor.ts";
import type { Logger } from "../telemetry/logger.ts";
import { createRedactor } from "../telemetry/redact.ts";

const SHOWN: Bounds = { maxChars: 8000, maxTextChars: 4000 };

/** What waits on one of several servers is decided at any of them. */
export async function openApprovalDesk(
  { store, cluster, ledger }: Config,
  { approvals, logger }: { readonly approvals: Approvals; readonly logger: Logger },
): Promise<ApprovalDesk> {
  if (store.url === "" || cluster.key === "") return localDesk(approvals);
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
