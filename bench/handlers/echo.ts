import { defineHandler } from "owlclaw";
import { z } from "zod";

export const echo = defineHandler({
  name: "echo",
  description: "Answers with the text it got",
  input: z.object({ text: z.string() }),
  effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
  run: ({ text }) => [{ type: "text", text }],
});
