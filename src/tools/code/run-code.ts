import type { GuestResult, Language } from "../../../contract/guest.ts";
import type { SandboxCall } from "../sandbox-tool.ts";

export type CodeResult = GuestResult<"code.run">;

export interface CodeRequest {
  readonly code: string;
  readonly language: Language;
  readonly timeoutSeconds: number;
  readonly maxOutputChars: number;
}

/** The operation behind `code_run` and its names in other dialects. */
export function runCode({ sandbox, signal, onOutput }: SandboxCall, request: CodeRequest): Promise<CodeResult> {
  const { code, language, timeoutSeconds, maxOutputChars } = request;
  const timeoutMs = Math.round(timeoutSeconds * 1000);
  return sandbox.runTimed("code.run", { code, language, timeoutMs, maxOutputChars }, { signal, onOutput });
}
