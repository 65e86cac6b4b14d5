import * as z from "zod";
import { FLAVORS } from "../sandbox/flavors.ts";
import type { Activity } from "./activity.ts";
import { type ApiRequest, type ApiRoute, Events } from "./api.ts";
import type { SandboxAbility, SandboxDetail, SandboxNow } from "./contract.ts";
import { bodyAs } from "./request-body.ts";
import type { SandboxDesk } from "./sandbox-desk.ts";

export interface SandboxRoutesOptions {
  readonly desk: SandboxDesk;
  readonly now: (cellId: string) => SandboxNow | undefined;
}

const MINUTE_MS = 60_000;
const extendSchema = z.strictObject({ minutes: z.int().min(1).max(1440).default(30) });
const ABILITIES: readonly SandboxAbility[] = [
  "stop",
  "extend",
  "destroy",
  "files",
  "changes",
  "network",
  "processes",
  "takeover",
  "browser",
];

/** `sandboxes/{id}`: what it is, what happens in it, and how long it may go on. */
export function sandboxRoutes({ desk, now }: SandboxRoutesOptions): readonly ApiRoute[] {
  const end =
    (name: "stop" | "destroy") =>
    async ({ operator, parts: [id = ""] }: ApiRequest): Promise<Record<string, unknown>> => {
      await desk.act(operator, id, { name });
      return { ended: await desk.end(id, name === "stop" ? "stopped" : "destroyed") };
    };
  return [
    {
      method: "GET",
      path: "sandboxes/{id}",
      answer: ({ parts: [id = ""] }) => ({ ...detailOf(desk, now, id) }),
    },
    { method: "GET", path: "sandboxes/{id}/activity", answer: ({ parts: [id = ""] }) => activityOf(desk, id) },
    { method: "POST", path: "sandboxes/{id}/stop", answer: end("stop") },
    { method: "POST", path: "sandboxes/{id}/destroy", answer: end("destroy") },
    {
      method: "POST",
      path: "sandboxes/{id}/extend",
      answer: async ({ operator, parts: [id = ""], body }) => {
        const { minutes } = bodyAs(extendSchema, body);
        const sandbox = await desk.act(operator, id, { name: "extend", args: { minutes } });
        sandbox.extend(Math.max(Date.now(), sandbox.endsAtMs) + minutes * MINUTE_MS);
        return { expiresAt: new Date(sandbox.endsAtMs).toISOString() };
      },
    },
  ];
}

function detailOf(desk: SandboxDesk, now: SandboxRoutesOptions["now"], id: string): SandboxDetail | undefined {
  const { facts, plan } = desk.get(id);
  const shown = now(id);
  return (
    shown && {
      ...shown,
      labels: facts.labels,
      limits: { ...FLAVORS[plan.flavor] },
      networkAllow: plan.network.allow,
      can: ABILITIES,
    }
  );
}

const texts = new WeakMap<Activity, string>();

/** Made once for all who look. */
function textOf(activity: Activity): string {
  let text = texts.get(activity);
  if (text === undefined) {
    text = JSON.stringify(activity);
    texts.set(activity, text);
  }
  return text;
}

function activityOf(desk: SandboxDesk, id: string): Events {
  desk.get(id);
  return new Events((sink) =>
    desk.activity.follow(id, (activity) => {
      sink.send("activity", textOf(activity), String(activity.seq));
      if (activity.kind === "state" && activity.text?.startsWith("ended: ") === true) sink.end();
    }),
  );
}
