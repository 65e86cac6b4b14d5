import type { Subject } from "../subject.ts";

/** One compiled entry of `visible`, `hidden`, `allow`, `deny`, `confirm` or `tools`. */
export interface Pattern {
  readonly text: string;
  /** Matches by one of the subject's names. Used for entries that allow. */
  matches(subject: Subject): boolean;
  /** Matches by any spelling of the subject. Used for entries that refuse or limit. */
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

/** A glob over names and URIs: `*` matches any characters, `?` one. Linear in the text, whatever the pattern. */
export function toMatcher(glob: string): (text: string) => boolean {
  if (glob === "*") return () => true;
  if (!isGlob(glob)) return (text) => text === glob;
  return (text) => matches(glob, text);
}

/** Whether it can match anything but itself. */
export function isGlob(text: string): boolean {
  return /[*?]/.test(text);
}

/** Greedy with a single point to backtrack to: no pattern takes exponential time, as a regular expression could. */
function matches(glob: string, text: string): boolean {
  let at = 0;
  let inGlob = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    const expected = glob[inGlob];
    if (expected === "*") {
      star = inGlob;
      resume = at;
      inGlob += 1;
    } else if (expected === "?" || (expected !== undefined && expected === text[at])) {
      inGlob += 1;
      at += 1;
    } else if (star !== -1) {
      inGlob = star + 1;
      resume += 1;
      at = resume;
    } else {
      return false;
    }
  }
  while (glob[inGlob] === "*") inGlob += 1;
  return inGlob === glob.length;
}
