import * as z from "zod";
import type { GuestResult } from "../../../contract/guest.ts";
import { leftRunning, outputChars, outputFields, outputShape, processesShape } from "../bounded-output.ts";
import { networkNote } from "../network-note.ts";
import {
  defineSandboxTool,
  toParams,
  type Outcome,
  type SandboxCall,
  type SandboxTool,
  type ToolLimits,
  timeoutField,
} from "../sandbox-tool.ts";

const ANSWER_MS = 30_000;

const MAX_WAIT_SECONDS = 60;

const execOutput = {
  status: z.enum(["exited", "timeout", "cancelled", "running"]),
  exit_code: z.number().nullable(),
  signal: z.string().nullable(),
  ...outputShape,
  duration_ms: z.number(),
  process_id: z.string().optional().describe("For shell_output and shell_kill; set with background: true."),
  left_running: processesShape,
};

export function shellTools(limits: ToolLimits): readonly SandboxTool[] {
  return [shellExec(limits), shellOutput(limits), shellKill()];
}

function shellExec(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "shell_exec",
    openSandboxName: "shell.exec",
    toolset: "shell",
    title: "Run a shell command",
    description: [
      "Runs a command with bash in an isolated sandbox and returns stdout, stderr and the exit code.",
      `It starts in ${limits.workspacePath}; files there stay until the sandbox ends, shell variables and cd do not last beyond the call.`,
      networkNote(limits.network),
      "With background: true it returns at once with a process_id for shell_output and shell_kill; such a process lives until it ends, is killed, or the sandbox ends.",
      "Processes that a command leaves behind go on and are listed; a time-out stops all of them.",
    ].join(" "),
    effect: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
    scope: "exec",
    input: {
      command: z.string().min(1).describe("As typed in a shell: pipes, redirections and several lines work."),
      cwd: z.string().min(1).optional().describe("Folder to run in, inside the workspace."),
      env: z.record(z.string(), z.string()).optional().describe("Environment variables for this command."),
      stdin: z.string().optional().describe("Text for the standard input."),
      timeout_seconds: timeoutField(limits),
      background: z.boolean().default(false).describe("Return at once and let it run."),
    },
    output: execOutput,
    run: async (call, { timeout_seconds: seconds, ...input }) => {
      const maxOutputChars = outputChars(limits.maxResultChars);
      const params = { ...toParams(input), timeoutMs: Math.round(seconds * 1000), maxOutputChars };
      const { signal, onOutput } = call;
      return execOutcome(call, await call.sandbox.runTimed("shell.exec", params, { signal, onOutput }), seconds);
    },
  });
}

type ShellResult = GuestResult<"shell.exec">;

function execOutcome({ sandbox, limits }: SandboxCall, result: ShellResult, seconds: number): Outcome {
  const { status, exitCode, signal, durationMs, processId } = result;
  const value = {
    status,
    exit_code: exitCode,
    signal,
    ...outputFields(sandbox.facts.id, result),
    duration_ms: Math.round(durationMs),
    ...(processId !== undefined && { process_id: processId }),
    ...leftRunning(result.leftRunning),
  };
  const failure = shellFailure(result, { seconds, maxSeconds: limits.maxTimeoutSeconds });
  const summary =
    processId === undefined ? `exit code ${exitCode} in ${Math.round(durationMs)} ms` : `runs as process ${processId}`;
  return { summary, value, ...(failure !== undefined && { failure }) };
}

export function shellFailure(
  { status, exitCode, signal, stderr }: ShellResult,
  { seconds, maxSeconds }: { readonly seconds: number; readonly maxSeconds: number },
): Outcome["failure"] {
  switch (status) {
    case "running":
      return undefined;
    case "timeout":
      return {
        reason: `the command ran for ${seconds} s and was stopped, with everything it started`,
        hint: `raise timeout_seconds (at most ${maxSeconds}), or use background: true and read it with shell_output`,
      };
    case "cancelled":
      return { reason: "the call was cancelled and the command stopped", hint: "run it again when it is wanted" };
    case "exited":
      if (exitCode === 0) return undefined;
      return {
        reason: exitCode === null ? `the command was ended by ${signal ?? "a signal"}` : `exit code ${exitCode}`,
        hint:
          stderr.text === ""
            ? "the command wrote nothing to stderr: look at stdout, or run its parts one by one, with set -x"
            : "read stderr below for the reason, correct the command and run it again",
      };
  }
}

const backgroundShape = {
  text: z.string().describe("stdout and stderr in the order in which they came."),
  cursor: z.number().describe("Pass it to the next shell_output to go on from here."),
  skipped_chars: z.number().optional().describe("Characters before the text that are no longer kept."),
  is_running: z.boolean(),
  exit_code: z.number().nullable(),
  signal: z.string().nullable(),
};

const processIdField = z.string().min(1).max(128).describe("As shell_exec returned it with background: true.");

function shellOutput(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "shell_output",
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
      return backgroundOutcome(
        await sandbox.request("shell.output", params, { timeoutMs: waitMs + ANSWER_MS, signal }),
      );
    },
  });
}

function backgroundOutcome(result: GuestResult<"shell.output">): Outcome {
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

function shellKill(): SandboxTool {
  return defineSandboxTool({
    name: "shell_kill",
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
      backgroundOutcome(
        await sandbox.request("shell.kill", { processId, signal }, { timeoutMs: ANSWER_MS, signal: abort }),
      ),
  });
}
