import * as z from "zod";
import { OwlError } from "../errors/owl-error.ts";
import { FLAVORS } from "../sandbox/flavors.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Activity } from "./activity-log.ts";
import { type ApiRequest, type ApiRoute, Events } from "./api.ts";
import type { SandboxAbility, SandboxDetail, SandboxNow } from "./contract.ts";
import { bodyAs } from "./request-body.ts";
import type { OperatorSandboxService } from "./sandbox-service.ts";

export interface SandboxRoutesOptions {
  readonly service: OperatorSandboxService;
  readonly now: (instanceId: string) => SandboxNow | undefined;
  readonly workspacePath: string;
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

/** `sandboxes/{id}`: its details, its activity, and its end. */
export function sandboxRoutes(options: SandboxRoutesOptions): readonly ApiRoute[] {
  const { service } = options;
  const end =
    (name: "stop" | "destroy") =>
    async ({ operator, parts: [id = ""] }: ApiRequest): Promise<Record<string, unknown>> => {
      await service.act(operator, id, { name });
      return { ended: await service.end(id, name === "stop" ? "stopped" : "destroyed") };
    };
  return [
    {
      method: "GET",
      path: "sandboxes/{id}",
      answer: ({ parts: [id = ""] }) => ({ ...detailOf(options, id) }),
    },
    { method: "GET", path: "sandboxes/{id}/activity", answer: ({ parts: [id = ""] }) => activityOf(service, id) },
    { method: "POST", path: "sandboxes/{id}/stop", answer: end("stop") },
    { method: "POST", path: "sandboxes/{id}/destroy", answer: end("destroy") },
    {
      method: "POST",
      path: "sandboxes/{id}/extend",
      answer: async ({ operator, parts: [id = ""], body }) => {
        const { minutes } = bodyAs(extendSchema, body);
        const sandbox = service.get(id);
        await sandbox.ready();
        const fromMs = Math.max(Date.now(), sandbox.endsAtMs);
        assertLasts(sandbox, { fromMs, minutes });
        await service.act(operator, id, { name: "extend", args: { minutes } });
        sandbox.extend(fromMs + minutes * MINUTE_MS);
        return { expiresAt: new Date(sandbox.endsAtMs).toISOString() };
      },
    },
  ];
}

/** Rejects an extension beyond the time at which the machine of the sandbox ends. */
function assertLasts(
  { lastsUntilMs = Infinity }: Sandbox,
  { fromMs, minutes }: { readonly fromMs: number; readonly minutes: number },
): void {
  const most = Math.max(0, Math.floor((lastsUntilMs - fromMs) / MINUTE_MS));
  if (minutes <= most) return;
  const endsAt = new Date(lastsUntilMs).toISOString();
  throw new OwlError("invalid_params", `the sandbox's machine ends by itself at ${endsAt}`, {
    hint: most === 0 ? "save what is needed, and go on in a new sandbox" : `extend it by at most ${most} minutes`,
  });
}

function detailOf({ service, now, workspacePath }: SandboxRoutesOptions, id: string): SandboxDetail | undefined {
  const { facts, plan } = service.get(id);
  const shown = now(id);
  return (
    shown && {
      ...shown,
      labels: facts.labels,
      limits: { ...FLAVORS[plan.flavor] },
      networkAllow: plan.network.allow,
      workspace: workspacePath,
      can: ABILITIES,
    }
  );
}

const texts = new WeakMap<Activity, string>();

/** Serialized once for all viewers. */
function textOf(activity: Activity): string {
  let text = texts.get(activity);
  if (text === undefined) {
    text = JSON.stringify(activity);
    texts.set(activity, text);
  }
  return text;
}

function activityOf(service: OperatorSandboxService, id: string): Events {
  service.get(id);
  return new Events((sink) =>
    service.activity.follow(id, (activity) => {
      sink.send("activity", textOf(activity), String(activity.seq));
      if (activity.kind === "state" && activity.text?.startsWith("ended: ") === true) sink.end();
    }),
  );
}
