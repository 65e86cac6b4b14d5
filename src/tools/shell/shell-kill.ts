import * as z from "zod";
import { defineSandboxTool, type SandboxTool } from "../sandbox-tool.ts";
import { backgroundShape, processIdField, toOutcome } from "./shell-output.ts";

const ANSWER_MS = 30_000;

export function shellKill(): SandboxTool {
  return defineSandboxTool({
    toolset: "shell",
    title: "Stop a background process",
    description:
      "Sends a signal to a background process of shell_exec and everything it started, and returns its last output. SIGTERM asks it to end, SIGKILL ends it at once.",
    effect: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
    scope: "exec",
    input: {
      process_id: processIdField,
      signal: z.enum(["SIGTERM", "SIGKILL", "SIGINT"]).default("SIGTERM"),
    },
    output: backgroundShape,
    run: async ({ sandbox, signal: abort }, { process_id: processId, signal }) =>
      toOutcome(await sandbox.request("shell.kill", { processId, signal }, { timeoutMs: ANSWER_MS, signal: abort })),
  });
}
