/** One entry of `ledger.redact`: the name of a key, or a pattern written as /…/ or /…/i. */
export type RedactRule =
  | { readonly kind: "key"; readonly name: string }
  | { readonly kind: "pattern"; readonly pattern: RegExp };

const MAX_RULE_CHARS = 500;
/** Repetitions in a row multiply: three of them over a bounded text are still quick. */
const MAX_REPETITIONS = 3;
/** Each doubles the ways in which a text can be tried. */
const MAX_CHOICES = 10;
const INNERMOST_GROUP = /\((?:\?(?:[:=!]|<[=!]|<\w+>))?([^()]*)\)(\*|\+|\{\d+,?\d*\})?/;

/** Nothing when the text is no rule, or one that could take for ever on a text made for it. */
export function parseRedactRule(text: string): RedactRule | undefined {
  if (text.length > MAX_RULE_CHARS) return undefined;
  const match = /^\/(.+)\/(i?)$/s.exec(text);
  if (match?.[1] === undefined) {
    return /^[\w.-]+$/.test(text) ? { kind: "key", name: text } : undefined;
  }
  if (!isLinear(match[1])) return undefined;
  try {
    const pattern = new RegExp(match[1], `g${match[2]}`);
    // One that fits the empty text fits between all characters.
    return pattern.test("") ? undefined : { kind: "pattern", pattern: new RegExp(pattern) };
  } catch {
    // Not a regular expression: the caller says so.
    return undefined;
  }
}

/** Groups with alternatives, and optional parts. */
export function choicesOf(source: string): number {
  const bare = source.replace(/\\./gs, "a").replace(/\[[^\]]*\]/g, "a");
  // The question mark in `(?:` opens a group and makes nothing optional.
  return (bare.replaceAll("(?", "(").match(/\([^()|]*\||\?/g) ?? []).length;
}

export function isRedactRule(text: string): boolean {
  return parseRedactRule(text) !== undefined;
}

/**
 * Refuses what makes a backtracking matcher exponential: a repetition or an alternative inside a repeated group, and references back.
 * It refuses some harmless patterns too.
 */
export function isLinear(source: string): boolean {
  if (/\\[1-9k]/.test(source)) return false;
  // Classes and escaped characters hold no structure.
  const bare = source.replace(/\\./gs, "a").replace(/\[[^\]]*\]/g, "a");
  if (choicesOf(source) > MAX_CHOICES) return false;
  let rest = bare;
  for (;;) {
    const group = INNERMOST_GROUP.exec(rest);
    if (group === null) return (bare.match(/[*+]|\{\d+,\d*\}/g) ?? []).length <= MAX_REPETITIONS;
    const [whole, content = "", repetition] = group;
    const hasChoice = /[|*+?{]/.test(content);
    if (hasChoice && repetition !== undefined) return false;
    // What the group leaves for the one around it: something with a choice inside, or nothing of note.
    rest = rest.replace(whole, () => (hasChoice || repetition !== undefined ? "a*" : "a"));
  }
}
