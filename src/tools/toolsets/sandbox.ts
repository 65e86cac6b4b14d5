import * as z from "zod";
import type { HandlerDefinition } from "../../capability/define.ts";
import { whyNoEnvName } from "../../config/value-rules.ts";
import { FLAVORS } from "../../sandbox/flavors.ts";
import type { SandboxUse } from "../../sandbox/sandboxes.ts";
import { networkNotes } from "../network-note.ts";
import { sessionShape, type ToolServices } from "../sandbox-tool.ts";
import { sessionFacts } from "../serve-sandbox-tool.ts";
import { fitValue } from "../fit-value.ts";

const GIB = 1024 ** 3;

export function sandboxTools(services: ToolServices): readonly HandlerDefinition[] {
  return [sandboxCreate(services), sandboxList(services), sandboxDestroy(services)];
}

const createShape = {
  flavor: z
    .enum(["small", "medium", "large"])
    .optional()
    .describe("small: 1 CPU, 1 GiB memory. medium: 2 and 2. large: 4 and 4."),
  env: z
    .record(z.string(), z.string())
    .superRefine((env, context) => {
      for (const name of Object.keys(env)) {
        const message = whyNoEnvName(name);
        if (message !== undefined) context.addIssue({ code: "custom", path: [name], message });
      }
    })
    .optional()
    .describe("Environment variables for everything that runs in it."),
  labels: z
    .record(z.string().max(64), z.string().max(256))
    .optional()
    .describe("Your own notes; sandbox_list shows them."),
  network: z
    .array(z.string().max(300))
    .max(100)
    .optional()
    .describe("Of the hosts that the server allows, only these, written as in the list that comes back."),
  offline: z.boolean().optional().describe("true: no network, whatever the server allows."),
  idle_timeout_seconds: z.number().positive().optional().describe("End it sooner than configured when it is not used."),
  max_age_seconds: z.number().positive().optional().describe("End it sooner than configured in any case."),
};

function createInput(templates: readonly string[]) {
  const template = z.enum(templates).optional().describe("What is inside. All have bash, python3, node and git.");
  return z.strictObject({ template, ...createShape });
}

const createOutput = z.object({
  ...sessionShape,
  template: z.string(),
  flavor: z.string(),
  cpus: z.number(),
  memory_gib: z.number(),
  workspace: z.string().describe("Where files are inside; relative paths start there."),
  volumes: z.array(z.string()).describe("Folders of the host that are visible inside."),
  network: z.array(z.string()).describe("Hosts that programs inside can reach; none: no network."),
  ends_at: z.string().describe("When it ends if no call uses it."),
});

function sandboxCreate(services: ToolServices): HandlerDefinition<ReturnType<typeof createInput>, typeof createOutput> {
  const { limits, sandboxes, templates } = services;
  const name = "sandbox_create";
  return {
    name,
    title: "Create a sandbox",
    description: [
      "Makes a new isolated sandbox with an empty workspace and waits until it is ready. Returns its session_id; it also becomes the default for calls without one in this session.",
      `It ends after ${Math.round(limits.idleTimeoutSeconds / 60)} minutes without a call, or with sandbox_destroy; files, variables and processes end with it.`,
      networkNotes(limits.network, limits.networkOfTemplates),
      "The other tools make a sandbox by themselves when they need one: call this for a second one, another size, or environment variables.",
    ].join(" "),
    effect: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
    scope: "exec",
    input: createInput(templates.names),
    output: createOutput,
    run: async (request, context) => {
      const sandboxUse = await sandboxes.create(context, {
        template: request.template,
        flavor: request.flavor,
        env: request.env,
        labels: request.labels,
        isOffline: request.offline,
        network: request.network,
        ...(request.idle_timeout_seconds !== undefined && { idleMs: request.idle_timeout_seconds * 1000 }),
        ...(request.max_age_seconds !== undefined && { maxAgeMs: request.max_age_seconds * 1000 }),
      });
      context.meter?.(sandboxUse.sandbox);
      try {
        const value = describe(sandboxUse, services);
        const { plan } = sandboxUse.sandbox;
        const text = `${name} ok: ${plan.template}, ${plan.flavor}, session_id ${sandboxUse.sandbox.facts.id}\n${JSON.stringify(value)}`;
        return { content: [{ type: "text", text }], structuredContent: value };
      } finally {
        sandboxUse.release();
      }
    },
  };
}

function describe(sandboxUse: SandboxUse, { limits, volumes }: ToolServices): Record<string, unknown> {
  const { plan, endsAtMs } = sandboxUse.sandbox;
  const { cpus, memoryBytes } = FLAVORS[plan.flavor];
  return {
    ...sessionFacts(sandboxUse),
    template: plan.template,
    flavor: plan.flavor,
    cpus,
    memory_gib: memoryBytes / GIB,
    workspace: limits.workspacePath,
    volumes: volumes.map(({ guestPath, isReadOnly }) => `${guestPath}${isReadOnly ? " (read-only)" : ""}`),
    network: [...plan.network.allow],
    ends_at: new Date(endsAtMs).toISOString(),
  };
}

const listInput = z.strictObject({
  session_id: z.string().min(1).max(128).optional().describe("Only this one."),
});

const listOutput = z.object({
  sandboxes: z.array(
    z.object({
      session_id: z.string(),
      state: z.string(),
      template: z.string(),
      flavor: z.string(),
      labels: z.record(z.string(), z.string()),
      created_at: z.string(),
      last_used_at: z.string(),
      ends_at: z.string(),
    }),
  ),
  is_truncated: z.boolean().optional(),
  note: z.string().optional(),
});

function sandboxList({ sandboxes, limits }: ToolServices): HandlerDefinition<typeof listInput, typeof listOutput> {
  const name = "sandbox_list";
  return {
    name,
    title: "List sandboxes",
    description:
      "Lists your sandboxes that are alive: session_id, state, template, flavor, labels, and when each ends if it is not used. Changes nothing, and keeps none of them alive.",
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "exec",
    input: listInput,
    output: listOutput,
    run: async (asked, context) => {
      const found = sandboxes
        .list(context)
        .filter(({ id }) => asked.session_id === undefined || id === asked.session_id);
      const list = found.map(({ id, state, template, flavor, labels, createdAtMs, lastUsedAtMs, endsAtMs }) => ({
        session_id: id,
        state,
        template,
        flavor,
        labels,
        created_at: new Date(createdAtMs).toISOString(),
        last_used_at: new Date(lastUsedAtMs).toISOString(),
        ends_at: new Date(endsAtMs).toISOString(),
      }));
      const head = `${name} ok: ${list.length} ${list.length === 1 ? "sandbox" : "sandboxes"}`;
      const { value, json } = fitValue({ sandboxes: list }, limits.maxResultChars - head.length - 1);
      return { content: [{ type: "text", text: `${head}\n${json}` }], structuredContent: value };
    },
  };
}

const destroyInput = z.strictObject({
  session_id: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe("The sandbox to destroy. Without it: the default sandbox of this session."),
});

const destroyOutput = z.object({
  session_id: z.string(),
  destroyed: z.boolean().describe("Nothing runs in it any more, and its session_id is not good any more."),
  files_left: z.literal(true).optional().describe("Its files could not be removed so far; the server tries again."),
});

function sandboxDestroy({ sandboxes }: ToolServices): HandlerDefinition<typeof destroyInput, typeof destroyOutput> {
  const name = "sandbox_destroy";
  return {
    name,
    title: "Destroy a sandbox",
    description:
      "Stops a sandbox with everything that runs in it and removes its files. This cannot be undone, and its session_id is not good any more.",
    effect: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
    scope: "exec",
    input: destroyInput,
    output: destroyOutput,
    run: async (asked, context) => {
      const { id, isGone } = await sandboxes.destroy(context, asked.session_id);
      const value = { session_id: id, destroyed: true, ...(!isGone && { files_left: true as const }) };
      const outcome = isGone ? "and its files are gone" : "is gone; its files are not yet, the server tries again";
      const text = `${name} ok: ${id} ${outcome}\n${JSON.stringify(value)}`;
      return { content: [{ type: "text", text }], structuredContent: value };
    },
  };
}
