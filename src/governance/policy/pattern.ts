import type { Subject } from "../subject.ts";
import { toMatcher } from "./glob.ts";

/** One entry of `visible`, `hidden`, `allow`, `deny`, `confirm` or `tools`, ready to be asked. */
export interface Pattern {
  readonly text: string;
  matches(subject: Subject): boolean;
}

const SCOPE = "scope:";
const PROMPT = "prompt:";

/**
 * `shell_*` and `skill://finance/*` match any of a tool's names or a resource's URI, `prompt:review` a prompt,
 * `scope:exec` every tool of that scope. `*` alone is everything.
 */
export function toPattern(text: string): Pattern {
  if (text === "*") return { text, matches: () => true };
  if (text.startsWith(SCOPE)) {
    const isMeant = toMatcher(text.slice(SCOPE.length));
    return { text, matches: ({ scope }) => scope !== undefined && isMeant(scope) };
  }
  const isPrompt = text.startsWith(PROMPT);
  const isMeant = toMatcher(isPrompt ? text.slice(PROMPT.length) : text);
  return { text, matches: ({ kind, names }) => (kind === "prompt") === isPrompt && names.some(isMeant) };
}
