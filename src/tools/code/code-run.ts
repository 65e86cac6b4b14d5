import * as z from "zod";
import { leftRunning, outputChars, outputFields, outputShape, processesShape } from "../bounded-output.ts";
import { cutText } from "../cut-text.ts";
import { networkNote } from "../network-note.ts";
import { defineSandboxTool, type Outcome, type SandboxCall, type SandboxTool } from "../sandbox-tool.ts";
import { timeoutField } from "../timeout-field.ts";
import type { ToolLimits } from "../tool-services.ts";
import { codeFailure } from "./code-failure.ts";
import { type CodeResult, runCode } from "./run-code.ts";
import { pictureBlocks } from "./pictures.ts";

const output = {
  status: z.enum(["ok", "error", "timeout", "cancelled", "crashed"]),
  language: z.enum(["python", "node"]),
  ...outputShape,
  value: z.string().optional().describe("The value of the last expression, as text."),
  images: z.number().optional().describe("How many pictures follow as image content."),
  duration_ms: z.number(),
  interpreter_restarted: z.boolean().optional().describe("Variables of this language are gone."),
  left_running: processesShape,
  earlier_output: z
    .string()
    .optional()
    .describe("What threads, timers and processes of earlier calls printed since the last call."),
};

export function codeRun(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "code",
    title: "Run code",
    description: [
      "Runs Python or Node.js code in an isolated sandbox.",
      "Variables, imports and functions stay for the next call of the same language in the same sandbox, until the sandbox ends",
      `(after ${Math.round(limits.idleTimeoutSeconds / 60)} minutes without a call) or a time-out stops the interpreter.`,
      "Returns stdout, stderr, the value of the last expression, and plots (matplotlib, PIL) as images; an exception comes back with its traceback.",
      `The working directory is ${limits.workspacePath}: files written there can be read with file_read. Top-level await works in both languages.`,
      networkNote(limits.network),
      "Pass session_id from an earlier result to go on in that sandbox.",
    ].join(" "),
    effect: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
    scope: "exec",
    input: {
      code: z.string().min(1).describe("The source to run."),
      language: z
        .enum(["python", "node"])
        .optional()
        .describe("Default: the language of the sandbox's template, python unless configured otherwise."),
      timeout_seconds: timeoutField(limits),
    },
    output,
    run: async (call, { code, language = call.sandbox.plan.language, timeout_seconds: seconds }) => {
      const result = await runCode(call, {
        code,
        language,
        timeoutSeconds: seconds,
        maxOutputChars: outputChars(limits.maxResultChars),
      });
      return toOutcome(call, { result, language, seconds });
    },
  });
}

function toOutcome(
  { sandbox, limits }: SandboxCall,
  { result, language, seconds }: { result: CodeResult; language: "python" | "node"; seconds: number },
): Outcome {
  const { status, value, error, pictures, durationMs, interpreterRestarted, earlierOutput } = result;
  const tenth = Math.floor(limits.maxResultChars / 10);
  const fields = {
    status,
    language,
    ...(value !== undefined && { value: cutText(value.text, tenth) }),
    ...(error !== undefined && { error: { name: error.name, message: cutText(error.message, tenth) } }),
    ...(error !== undefined && { traceback: cutText(error.traceback, 2 * tenth) }),
    ...outputFields(sandbox.facts.id, result),
    ...(pictures.length > 0 && { images: pictures.length }),
    duration_ms: Math.round(durationMs),
    ...(interpreterRestarted && { interpreter_restarted: true }),
    ...leftRunning(result.leftRunning),
    ...(earlierOutput !== undefined && { earlier_output: cutText(earlierOutput, tenth) }),
  };
  const failure = codeFailure(result, { language, seconds, maxSeconds: limits.maxTimeoutSeconds });
  return {
    summary: `${language} in ${Math.round(durationMs)} ms${value === undefined ? "" : `, value ${shortValue(value.text)}`}`,
    value: fields,
    blocks: pictureBlocks(result, sandbox.facts.id),
    ...(failure !== undefined && { failure }),
  };
}

function shortValue(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > 80 ? `${line.slice(0, 77)}...` : line;
}
