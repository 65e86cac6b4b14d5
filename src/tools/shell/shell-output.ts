import type { GuestResult } from "../../../contract/guest.ts";
import * as z from "zod";
import { defineSandboxTool, type Outcome, type SandboxTool } from "../sandbox-tool.ts";
import type { ToolLimits } from "../tool-services.ts";

const ANSWER_MS = 30_000;
const MAX_WAIT_SECONDS = 60;

export const backgroundShape = {
  text: z.string().describe("stdout and stderr in the order in which they came."),
  cursor: z.number().describe("Pass it to the next shell_output to go on from here."),
  skipped_chars: z.number().optional().describe("Characters before the text that are no longer kept."),
  is_running: z.boolean(),
  exit_code: z.number().nullable(),
  signal: z.string().nullable(),
};

export const processIdField = z.string().min(1).max(128).describe("As shell_exec returned it with background: true.");

export function shellOutput(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "shell",
    title: "Read a background process",
    description:
      "Reads what a background process of shell_exec has written since the cursor, and whether it still runs. Pass the returned cursor to go on; wait_seconds waits for something new. Changes nothing. The process_id is good until the sandbox ends.",
    effect: { readOnly: true, destructive: false, idempotent: false, openWorld: false },
    scope: "exec",
    input: {
      process_id: processIdField,
      cursor: z.int().min(0).default(0).describe("From the last answer; 0 at first."),
      wait_seconds: z.number().min(0).max(MAX_WAIT_SECONDS).default(0).describe("Wait so long for something new."),
    },
    output: backgroundShape,
    run: async ({ sandbox, signal }, { process_id: processId, cursor, wait_seconds: seconds }) => {
      const waitMs = Math.round(seconds * 1000);
      const params = { processId, cursor, maxChars: Math.floor(limits.maxResultChars * 0.6), waitMs };
      return toOutcome(await sandbox.request("shell.output", params, { timeoutMs: waitMs + ANSWER_MS, signal }));
    },
  });
}

export function toOutcome(result: GuestResult<"shell.output">): Outcome {
  const { text, cursor, skippedChars, isRunning, exitCode, signal } = result;
  return {
    summary: isRunning ? "still running" : `ended with ${signal ?? `exit code ${exitCode}`}`,
    value: {
      text,
      cursor,
      ...(skippedChars > 0 && { skipped_chars: skippedChars }),
      is_running: isRunning,
      exit_code: exitCode,
      signal,
    },
  };
}
