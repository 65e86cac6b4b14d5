import type { PauseDesk } from "../operator/pause-routes.ts";
import { EVERYBODY } from "../governance/pauses.ts";
import type { OpenGovernance } from "./open-governance.ts";
import { type OperatorDoor, recordAct } from "../call/operator-acts.ts";

/** Stops clients and lets them go on, on the record. */
export function pauseDesk(governance: OpenGovernance, transport: OperatorDoor): PauseDesk {
  const { pauses } = governance.governor;
  return {
    list: () => pauses.list(),
    async pause({ client = EVERYBODY, by, reason, cancel }) {
      // In force before it is on record: who runs wild must not run until the disk has answered.
      await pauses.pause({ client, by, reason, since: new Date().toISOString(), ...(cancel && { cancel }) });
      await recordAct(governance, { by, transport, name: "client.pause", args: { client, reason, cancel } });
    },
    async resume({ client = EVERYBODY, by }) {
      // It may have been paused on another server, a moment ago.
      await pauses.catchUp();
      if (!pauses.list().some((pause) => pause.client === client)) return false;
      await recordAct(governance, { by, transport, name: "client.resume", args: { client } });
      return pauses.resume(client);
    },
  };
}
