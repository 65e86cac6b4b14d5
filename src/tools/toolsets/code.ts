import * as z from "zod";
import { leftRunning, outputChars, outputFields, outputShape, processesShape } from "../bounded-output.ts";
import { cutText } from "../fit-value.ts";
import { networkNote } from "../network-note.ts";
import {
  defineSandboxTool,
  type Outcome,
  type SandboxCall,
  type SandboxTool,
  type ToolLimits,
  timeoutField,
} from "../sandbox-tool.ts";
import type { GuestResult, Language } from "../../../contract/guest.ts";
import type { ContentBlock } from "../../capability/content.ts";
import { sandboxUri } from "../workspace-files.ts";

export type CodeResult = GuestResult<"code.run">;

interface CodeRequest {
  readonly code: string;
  readonly language: Language;
  readonly timeoutSeconds: number;
  readonly maxOutputChars: number;
}

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

export function codeTools(limits: ToolLimits): readonly SandboxTool[] {
  return [codeRun(limits)];
}

function codeRun(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "code_run",
    openSandboxName: "code.exec",
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

/** The operation behind `code_run` and its names in other dialects. */
export function runCode({ sandbox, signal, onOutput }: SandboxCall, request: CodeRequest): Promise<CodeResult> {
  const { code, language, timeoutSeconds, maxOutputChars } = request;
  const timeoutMs = Math.round(timeoutSeconds * 1000);
  return sandbox.runTimed("code.run", { code, language, timeoutMs, maxOutputChars }, { signal, onOutput });
}

interface CodeLimits {
  readonly language: Language;
  readonly seconds: number;
  readonly maxSeconds: number;
}

/** Why the code failed, and what to do next; undefined when it succeeded. */
export function codeFailure(
  { status, error, interpreterRestarted }: CodeResult,
  { language, seconds, maxSeconds }: CodeLimits,
): Outcome["failure"] {
  const fresh = interpreterRestarted ? `; the ${language} interpreter starts afresh, without your variables` : "";
  switch (status) {
    case "ok":
      return undefined;
    case "error":
      return {
        reason: error === undefined ? "the code raised an exception" : `${error.name}: ${error.message}`,
        hint: `${errorHint(error)}; ${interpreterRestarted ? `the ${language} interpreter had started afresh: set earlier variables again` : "what was set before it is still there"}`,
      };
    case "timeout":
      return {
        reason: `the code ran for ${seconds} s and was stopped`,
        hint: `do less at once, raise timeout_seconds (at most ${maxSeconds}), or start it with shell_exec and background: true${fresh}`,
      };
    case "cancelled":
      return { reason: "the call was cancelled and the code stopped", hint: `run it again when it is wanted${fresh}` };
    case "crashed":
      return {
        reason: error === undefined ? "the interpreter ended" : error.message,
        hint: `use less memory or avoid what ends the process, then run again${fresh}`,
      };
  }
}

function errorHint(error: CodeResult["error"]): string {
  return error === undefined || error.traceback === ""
    ? "the code ended itself with a status other than 0: find out why, correct it and run again"
    : "the traceback points at your line: correct it and run again";
}

/** Plots and images for the model, and the HTML form of a value for the user. */
export function pictureBlocks({ pictures, value }: CodeResult, sandboxId: string): ContentBlock[] {
  const images = pictures.map(({ mimeType, data }): ContentBlock => ({ type: "image", mimeType, data }));
  if (value?.html === undefined || value.file === undefined) return images;
  const html: ContentBlock = {
    type: "resource",
    resource: { uri: sandboxUri(sandboxId, value.file), mimeType: "text/html", text: value.html },
    annotations: { audience: ["user"] },
  };
  return [...images, html];
}
