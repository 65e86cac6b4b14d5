import * as z from "zod";
import { EVERYBODY, type Pause } from "../governance/pauses.ts";
import type { ApiRoute } from "./api.ts";
import { bodyAs } from "./request-body.ts";
import type { Governance } from "../call/governed-work.ts";
import { type OperatorTransport, recordAct } from "../call/operator-acts.ts";

/** Pauses and resumes clients, and records it. */
export interface PauseService {
  list(): readonly Pause[];
  /** Without `client`: all clients. */
  pause(request: {
    readonly client: string | undefined;
    readonly by: string;
    readonly reason: string;
    readonly cancel: boolean;
  }): Promise<void>;
  resume(request: { readonly client: string | undefined; readonly by: string }): Promise<boolean>;
}

const client = z.string().min(1).max(256).optional();
const pauseSchema = z.strictObject({
  client,
  reason: z.string().max(500).default(""),
  cancel: z.boolean().default(false),
});
const resumeSchema = z.strictObject({ client });

/** `pause`, `resume` and `paused`. */
export function pauseRoutes(service: PauseService): readonly ApiRoute[] {
  const paused = (): { readonly paused: readonly Pause[] } => ({ paused: service.list() });
  return [
    { method: "GET", path: "paused", answer: paused },
    {
      method: "POST",
      path: "pause",
      answer: async ({ operator, body }) => {
        const { client: who, reason, cancel } = bodyAs(pauseSchema, body);
        await service.pause({ client: who, reason, cancel, by: operator.id });
        return paused();
      },
    },
    {
      method: "POST",
      path: "resume",
      answer: async ({ operator, body }) => {
        await service.resume({ client: bodyAs(resumeSchema, body).client, by: operator.id });
        return paused();
      },
    },
  ];
}

/** Pauses and resumes clients, and records both. */
export function pauseService(governance: Governance, transport: OperatorTransport): PauseService {
  const { pauses } = governance.governor;
  return {
    list: () => pauses.list(),
    async pause({ client = EVERYBODY, by, reason, cancel }) {
      // The pause takes effect before it is recorded: a runaway client must not continue until the ledger is written.
      await pauses.pause({ client, by, reason, since: new Date().toISOString(), ...(cancel && { cancel }) });
      await recordAct(governance, { by, transport, name: "client.pause", args: { client, reason, cancel } });
    },
    async resume({ client = EVERYBODY, by }) {
      // Another server may have paused it a moment ago.
      await pauses.catchUp();
      if (!pauses.list().some((pause) => pause.client === client)) return false;
      await recordAct(governance, { by, transport, name: "client.resume", args: { client } });
      return pauses.resume(client);
    },
  };
}
