import { z } from "zod";
import { fieldFacts, seconds } from "./field.ts";

export const skills = z
  .strictObject({
    dir: z
      .string()
      .default("")
      .describe("Folder with your skills, as category/name/SKILL.md. Empty: no skills.")
      .register(fieldFacts, { path: "file" }),
    cacheTtlSeconds: seconds()
      .default(600)
      .describe("Skills are kept in memory for this long before the disk is looked at again, whether watched or not."),
    watch: z
      .boolean()
      .default(true)
      .describe("Follows changes of the folder at once. false: changes are seen after skills.cacheTtlSeconds."),
  })
  .prefault({})
  .describe("Your knowledge, served as resources.");
