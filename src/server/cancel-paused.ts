import { OwlError } from "../errors/owl-error.ts";
import type { Approvals } from "../governance/approval/approvals.ts";
import type { Pause } from "../governance/pause.ts";
import { EVERYBODY } from "../governance/pauses.ts";
import type { RunningCalls } from "../call/running-calls.ts";

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
