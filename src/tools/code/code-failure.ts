import type { Language } from "../../../contract/guest.ts";
import type { Outcome } from "../sandbox-tool.ts";
import type { CodeResult } from "./run-code.ts";

export interface CodeLimits {
  readonly language: Language;
  readonly seconds: number;
  readonly maxSeconds: number;
}

/** Why the code did not end well, and what to do next; nothing when it did. */
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
