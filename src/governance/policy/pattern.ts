import type { Subject } from "../subject.ts";
import { toMatcher } from "./glob.ts";

/** One entry of `visible`, `hidden`, `allow`, `deny`, `confirm` or `tools`, ready to be asked. */
export interface Pattern {
  readonly text: string;
  /** By one of its names: what lets it through asks this. */
  matches(subject: Subject): boolean;
  /** By any way to write them: what refuses or limits it asks this. */
  touches(subject: Subject): boolean;
}

const SCOPE = "scope:";
const PROMPT = "prompt:";

/**
 * `shell_*` and `skill://finance/*` match any of a tool's names or a resource's URI, `prompt:review` a prompt,
 * `scope:exec` every tool of that scope. `*` alone is everything.
 */
export function toPattern(text: string): Pattern {
  if (text === "*") return { text, matches: () => true, touches: () => true };
  if (text.startsWith(SCOPE)) {
    const isMeant = toMatcher(text.slice(SCOPE.length));
    const matches = ({ scope }: Subject): boolean => scope !== undefined && isMeant(scope);
    return { text, matches, touches: matches };
  }
  const isPrompt = text.startsWith(PROMPT);
  const isMeant = toMatcher(isPrompt ? text.slice(PROMPT.length) : text);
  const matches = ({ kind, names }: Subject): boolean => (kind === "prompt") === isPrompt && names.some(isMeant);
  const isSpelled = ({ kind, spellings = [] }: Subject): boolean =>
    (kind === "prompt") === isPrompt && spellings.some(isMeant);
  return { text, matches, touches: (subject) => matches(subject) || isSpelled(subject) };
}
