import { toOwlError } from "../../../errors/owl-error.ts";
import type { ProbeReport, Runtime } from "../runtime.ts";
import type { Answer } from "./attack-answer.ts";
import { type Cause, CHECK_NAMES, type CheckName, toCheck } from "./checks.ts";

export interface Attacked {
  readonly runtime: Runtime["name"];
  /** What started, as a sentence. */
  readonly started: string;
  readonly answer: Answer;
  /** Where the runtime knows better what is wrong. */
  readonly causes?: Partial<Record<CheckName, Cause>>;
}

/** What was not tried, or gave no answer, does not hold. */
export function attackReport({ runtime, started, answer, causes = {} }: Attacked): ProbeReport {
  const untried: Answer[string] = [true, "the attack gave no answer"];
  return {
    runtime,
    checks: [
      { name: "start", holds: true, severity: "isolation", detail: started },
      ...CHECK_NAMES.map((name) => toCheck(name, answer[name] ?? untried, causes[name])),
    ],
  };
}

/** Why nothing started. What may pass by itself, as a missing image, says nothing about the isolation: it is thrown. */
export function failedStart(runtime: Runtime["name"], error: unknown): ProbeReport {
  const { kind, message, hint, retryable } = toOwlError(error);
  if (kind === "sandbox_unavailable" && retryable) throw error;
  return { runtime, checks: [{ name: "start", holds: false, severity: "isolation", detail: message, fix: hint }] };
}

/** Whether a signal says that the time is over, and not that nobody wants to know any more. */
export function isTimeout({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof Error && reason.name === "TimeoutError";
}
