import type { PauseDesk } from "../dashboard/pause-routes.ts";
import { OwlError } from "../errors/owl-error.ts";
import { EVERYBODY } from "../governance/pauses.ts";
import type { OpenGovernance } from "./open-governance.ts";
import { recordAct } from "./operator-record.ts";

/** Stops clients and lets them go on, on the record. */
export function pauseDesk(governance: OpenGovernance): PauseDesk {
  const { pauses } = governance.governor;
  return {
    list: () => pauses.list(),
    async pause({ client = EVERYBODY, by, reason, cancel }) {
      const pause = { client, by, reason, since: new Date().toISOString() };
      // In force before it is on record: who runs wild must not run until the disk has answered.
      const inForce = pauses.pause(pause);
      if (cancel) cancelCalls(governance, client, by);
      await inForce;
      await recordAct(governance, { by, name: "client.pause", args: { client, reason, cancel } });
    },
    async resume({ client = EVERYBODY, by }) {
      if (!pauses.list().some((pause) => pause.client === client)) return false;
      await recordAct(governance, { by, name: "client.resume", args: { client } });
      return pauses.resume(client);
    },
  };
}

function cancelCalls({ governor, running }: OpenGovernance, client: string, by: string): void {
  const isMeant = (principal: string): boolean => client === EVERYBODY || principal === client;
  for (const { id, principal } of governor.approvals.list()) {
    if (isMeant(principal)) governor.approvals.deny(id, by, "the client was paused");
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
