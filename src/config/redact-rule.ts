/** One entry of `ledger.redact`: the name of a key, or a regular expression written as /…/ or /…/i. */
export type RedactRule =
  | { readonly kind: "key"; readonly name: string }
  | { readonly kind: "pattern"; readonly pattern: RegExp };

const MAX_RULE_CHARS = 500;
/** The run times of consecutive repetitions multiply. Three of them on a bounded text are still fast. */
const MAX_REPETITIONS = 3;
/** Each choice doubles the number of ways in which the matcher can try a text. */
const MAX_CHOICES = 10;
const INNERMOST_GROUP = /\((?:\?(?:[:=!]|<[=!]|<\w+>))?([^()]*)\)(\*|\+|\{\d+,?\d*\})?/;

/** Undefined when the text is not a valid rule, or when its pattern could take exponential time on a crafted text. */
export function parseRedactRule(text: string): RedactRule | undefined {
  if (text.length > MAX_RULE_CHARS) return undefined;
  const match = /^\/(.+)\/(i?)$/s.exec(text);
  if (match?.[1] === undefined) {
    return /^[\w.-]+$/.test(text) ? { kind: "key", name: text } : undefined;
  }
  if (!isLinear(match[1])) return undefined;
  try {
    const pattern = new RegExp(match[1], `g${match[2]}`);
    // A pattern that matches the empty text would match between all characters.
    return pattern.test("") ? undefined : { kind: "pattern", pattern: new RegExp(pattern) };
  } catch {
    // Not a regular expression. The caller reports it.
    return undefined;
  }
}

/** The number of alternatives and optional parts. */
export function choicesOf(source: string): number {
  const bare = source.replace(/\\./gs, "a").replace(/\[[^\]]*\]/g, "a");
  // The question mark in `(?:` starts a group and does not make anything optional.
  return (bare.replaceAll("(?", "(").match(/\([^()|]*\||\?/g) ?? []).length;
}

export function isRedactRule(text: string): boolean {
  return parseRedactRule(text) !== undefined;
}

/**
 * Rejects what makes a backtracking matcher exponential: a repetition or an alternative inside a repeated group, and
 * backreferences. It rejects some harmless patterns too.
 */
export function isLinear(source: string): boolean {
  if (/\\[1-9k]/.test(source)) return false;
  // Replaces character classes and escaped characters, which contain no operators.
  const bare = source.replace(/\\./gs, "a").replace(/\[[^\]]*\]/g, "a");
  if (choicesOf(source) > MAX_CHOICES) return false;
  let rest = bare;
  for (;;) {
    const group = INNERMOST_GROUP.exec(rest);
    if (group === null) return (bare.match(/[*+]|\{\d+,\d*\}/g) ?? []).length <= MAX_REPETITIONS;
    const [whole, content = "", repetition] = group;
    const hasChoice = /[|*+?{]/.test(content);
    if (hasChoice && repetition !== undefined) return false;
    // Replaces the group for the check of the enclosing one: with a repetition when it contains a choice, otherwise
    // with a literal.
    rest = rest.replace(whole, () => (hasChoice || repetition !== undefined ? "a*" : "a"));
  }
}
