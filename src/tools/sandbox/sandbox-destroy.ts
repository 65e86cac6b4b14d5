import * as z from "zod";
import type { HandlerDefinition } from "../../capability/define.ts";
import type { ToolServices } from "../tool-services.ts";

const input = z.strictObject({
  session_id: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe("The sandbox to destroy. Without it: the default sandbox of this session."),
});

const output = z.object({
  session_id: z.string(),
  destroyed: z.boolean().describe("Nothing runs in it any more, and its session_id is not good any more."),
  files_left: z.literal(true).optional().describe("Its files could not be removed so far; the server tries again."),
});

export function sandboxDestroy({ sandboxes }: ToolServices): HandlerDefinition<typeof input, typeof output> {
  const name = "sandbox_destroy";
  return {
    name,
    title: "Destroy a sandbox",
    description:
      "Stops a sandbox with everything that runs in it and removes its files. This cannot be undone, and its session_id is not good any more.",
    effect: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
    scope: "exec",
    input,
    output,
    run: async (asked, context) => {
      const { id, isGone } = await sandboxes.destroy(context, asked.session_id);
      const value = { session_id: id, destroyed: true, ...(!isGone && { files_left: true as const }) };
      const told = isGone ? "and its files are gone" : "is gone; its files are not yet, the server tries again";
      const text = `${name} ok: ${id} ${told}\n${JSON.stringify(value)}`;
      return { content: [{ type: "text", text }], structuredContent: value };
    },
  };
}
