import * as z from "zod";
import type { ToolLimits } from "./tool-services.ts";

/** `timeout_seconds` of code and commands; it ends before the tool's own time-out does. */
export function timeoutField({ defaultTimeoutSeconds, maxTimeoutSeconds }: ToolLimits) {
  return z
    .number()
    .positive()
    .max(maxTimeoutSeconds)
    .default(Math.min(defaultTimeoutSeconds, maxTimeoutSeconds))
    .describe("After this it is stopped, with everything it started.");
}
