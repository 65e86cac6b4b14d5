import type { CallContext, HandlerSandbox, SandboxRun } from "../capability/context.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { GuestResult } from "../../contract/guest.ts";
import { withoutUndefined, isRecord } from "../platform/records.ts";
import { runCode } from "./toolsets/code.ts";
import { type SandboxCall, type ToolServices, FILE_TIMEOUT_MS } from "./sandbox-tool.ts";
import { inSandbox } from "./serve-sandbox-tool.ts";

/** Larger than for models: the handler's own code reads the output. */
const MAX_OUTPUT_CHARS = 1_000_000;
const MAX_FILE_BYTES = 4 * 1024 * 1024;

/** The caller's sandbox for a handler. All uses during one call share the same sandbox. */
export function handlerSandbox(services: ToolServices, context: CallContext): HandlerSandbox {
  const { defaultTimeoutSeconds } = services.limits;
  let sessionId: string | undefined;
  const use = <T>(tool: string, input: unknown, work: (call: SandboxCall) => Promise<T>): Promise<T> =>
    inSandbox(services, { context, sessionId, use: { tool, input } }, (call, { sandbox }) => {
      sessionId = sandbox.facts.id;
      return work(call);
    });
  return {
    run: (code, { language = "python", timeoutSeconds = defaultTimeoutSeconds } = {}) =>
      use("code_run", { code, language }, async (call) =>
        toCodeRun(await runCode(call, { code, language, timeoutSeconds, maxOutputChars: MAX_OUTPUT_CHARS })),
      ),
    exec: (command, { timeoutSeconds = defaultTimeoutSeconds } = {}) =>
      use("shell_exec", { command }, async ({ sandbox, signal, onOutput }) => {
        const timeoutMs = Math.round(timeoutSeconds * 1000);
        const params = { command, timeoutMs, maxOutputChars: MAX_OUTPUT_CHARS, background: false };
        return toShellRun(await sandbox.runTimed("shell.exec", params, { signal, onOutput }));
      }),
    readFile: (path) =>
      use("file_read", { path }, async ({ sandbox, signal }) => {
        const params = { path, encoding: "utf-8", maxBytes: MAX_FILE_BYTES } as const;
        const { content, isTruncated } = await sandbox.request("file.read", params, {
          timeoutMs: FILE_TIMEOUT_MS,
          signal,
        });
        if (isTruncated) throw new OwlError("resource_limit", `${path} is longer than ${MAX_FILE_BYTES} bytes`);
        return content;
      }),
    writeFile: (path, content) =>
      use("file_write", { path }, async ({ sandbox, signal }) => {
        const params = { path, content, encoding: "utf-8", mode: "overwrite" } as const;
        await sandbox.request("file.write", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
      }),
  };
}

/** Serves a handler's request from a worker, whose shape is not trusted. */
export async function useHandlerSandbox(sandbox: HandlerSandbox, request: unknown): Promise<unknown> {
  const { verb, code, command, path, content, language, timeoutSeconds } = isRecord(request) ? request : {};
  const time = typeof timeoutSeconds === "number" && timeoutSeconds > 0 ? { timeoutSeconds } : {};
  switch (verb) {
    case "run":
      return sandbox.run(text(code), { language: language === "node" ? "node" : "python", ...time });
    case "exec":
      return sandbox.exec(text(command), time);
    case "readFile":
      return sandbox.readFile(text(path));
    case "writeFile":
      return sandbox.writeFile(text(path), text(content));
    default:
      throw new OwlError("execution_error", "a sandbox has run, exec, readFile and writeFile");
  }
}

function toCodeRun({ status, stdout, stderr, value, error }: GuestResult<"code.run">): SandboxRun {
  const texts = { stdout: stdout.text, stderr: stderr.text, value: value?.text, error: error?.traceback };
  return withoutUndefined({ status, ...texts });
}

function toShellRun({ status, stdout, stderr, exitCode }: GuestResult<"shell.exec">): SandboxRun {
  const outcome = status === "exited" || status === "running" ? (exitCode === 0 ? "ok" : "error") : status;
  return withoutUndefined({
    status: outcome,
    stdout: stdout.text,
    stderr: stderr.text,
    exitCode: exitCode ?? undefined,
  });
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new OwlError("execution_error", "a sandbox needs code, command, path and content as text");
}
