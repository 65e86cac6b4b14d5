import * as z from "zod";
import type { Pause } from "../governance/pause.ts";
import type { ApiRoute } from "./api.ts";
import { bodyAs } from "./request-body.ts";

/** The switch that stops clients, with its record. */
export interface PauseDesk {
  list(): readonly Pause[];
  /** Without a client: everybody. */
  pause(wish: {
    readonly client: string | undefined;
    readonly by: string;
    readonly reason: string;
    readonly cancel: boolean;
  }): Promise<void>;
  resume(wish: { readonly client: string | undefined; readonly by: string }): Promise<boolean>;
}

const client = z.string().min(1).max(256).optional();
const pauseSchema = z.strictObject({
  client,
  reason: z.string().max(500).default(""),
  cancel: z.boolean().default(false),
});
const resumeSchema = z.strictObject({ client });

/** `pause`, `resume` and `paused`. */
export function pauseRoutes(desk: PauseDesk): readonly ApiRoute[] {
  const paused = (): { readonly paused: readonly Pause[] } => ({ paused: desk.list() });
  return [
    { method: "GET", path: "paused", answer: paused },
    {
      method: "POST",
      path: "pause",
      answer: async ({ operator, body }) => {
        const { client: who, reason, cancel } = bodyAs(pauseSchema, body);
        await desk.pause({ client: who, reason, cancel, by: operator.id });
        return paused();
      },
    },
    {
      method: "POST",
      path: "resume",
      answer: async ({ operator, body }) => {
        await desk.resume({ client: bodyAs(resumeSchema, body).client, by: operator.id });
        return paused();
      },
    },
  ];
}
