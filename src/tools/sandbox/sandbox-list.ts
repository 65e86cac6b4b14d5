import * as z from "zod";
import type { HandlerDefinition } from "../../capability/define.ts";
import { fitValue } from "../fit-value.ts";
import type { ToolServices } from "../tool-services.ts";

const input = z.strictObject({
  session_id: z.string().min(1).max(128).optional().describe("Only this one."),
});

const output = z.object({
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

export function sandboxList({ sandboxes, limits }: ToolServices): HandlerDefinition<typeof input, typeof output> {
  const name = "sandbox_list";
  return {
    name,
    title: "List sandboxes",
    description:
      "Lists your sandboxes that are alive: session_id, state, template, flavor, labels, and when each ends if it is not used. Changes nothing, and keeps none of them alive.",
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "exec",
    input,
    output,
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
