import type { GuestResult } from "../../../contract/guest.ts";
import * as z from "zod";
import { leftRunning, outputChars, outputFields, outputShape, processesShape } from "../bounded-output.ts";
import { networkNote } from "../network-note.ts";
import { defineSandboxTool, type Outcome, type SandboxCall, type SandboxTool } from "../sandbox-tool.ts";
import { timeoutField } from "../timeout-field.ts";
import type { ToolLimits } from "../tool-services.ts";

const output = {
  status: z.enum(["exited", "timeout", "cancelled", "running"]),
  exit_code: z.number().nullable(),
  signal: z.string().nullable(),
  ...outputShape,
  duration_ms: z.number(),
  process_id: z.string().optional().describe("For shell_output and shell_kill; set with background: true."),
  left_running: processesShape,
};

export function shellExec(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
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
    output,
    run: async (call, { command, cwd, env, stdin, timeout_seconds: seconds, background }) => {
      const params = {
        command,
        ...(cwd !== undefined && { cwd }),
        ...(env !== undefined && { env }),
        ...(stdin !== undefined && { stdin }),
        timeoutMs: Math.round(seconds * 1000),
        maxOutputChars: outputChars(limits.maxResultChars),
        background,
      };
      const { signal, onOutput } = call;
      return toOutcome(call, await call.sandbox.runTimed("shell.exec", params, { signal, onOutput }), seconds);
    },
  });
}

type ShellResult = GuestResult<"shell.exec">;

function toOutcome({ sandbox, limits }: SandboxCall, result: ShellResult, seconds: number): Outcome {
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
