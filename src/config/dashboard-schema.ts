import { z } from "zod";
import { seconds } from "./field.ts";

export const dashboard = z
  .strictObject({
    enabled: z.boolean().default(true).describe("Serves the page for operators at /dashboard, over HTTP."),
    besideStdio: z
      .boolean()
      .default(false)
      .describe("Serves it on a port of loopback, too, when clients use stdio: start --dashboard."),
    port: z.int().min(0).max(65_535).default(0).describe("That port. 0: any free one."),
    idleSeconds: seconds().default(1800).describe("An operator who does nothing for this long has to log in again."),
    maxAgeSeconds: seconds().default(28_800).describe("The same after this long in any case."),
  })
  .prefault({})
  .describe("The page for operators.");
