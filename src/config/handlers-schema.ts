import { z } from "zod";
import { count, fieldFacts } from "./field.ts";

export const handlers = z
  .strictObject({
    paths: z
      .array(z.string().min(1))
      .default([])
      .describe("Files, folders or globs with your own handlers, resources and prompts.")
      .register(fieldFacts, { path: "glob" }),
    isolation: z
      .enum(["worker", "sandbox", "none"])
      .default("worker")
      .describe(
        "Where handlers run: worker: processes beside the server. sandbox: isolated, without network and the server's files. none: in the server's own process, the fastest and least protected.",
      ),
    workers: count()
      .default(4)
      .describe("Most worker processes per language. Each starts when the ones before it are blocked or busy."),
    python: z
      .string()
      .default("")
      .describe("The Python for .py handlers, 3.9 or later: a program or a virtualenv's folder. Empty: python3.")
      .register(fieldFacts, { path: "program" }),
    watch: z.boolean().default(true).describe("A change of a handler file changes the tools, without a restart."),
    inlineSkills: z
      .boolean()
      .default(false)
      .describe("Puts the whole text of a tool's skill into its description. false: a summary and the skill's URI."),
  })
  .prefault({})
  .describe("Your own functions, served as tools.");
