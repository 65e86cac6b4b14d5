import { choicesOf, isLinear } from "../../config/redact-rule.ts";
import type { Facts } from "./expression.ts";

/** What the text of an expression reveals about its running time. */
export interface ExpressionCost {
  /** How many functions that iterate over a list it has. When they are nested, their times multiply. */
  readonly loops: number;
  /** The time of its slowest pattern grows with the text's length to this power. 0 without a pattern. */
  readonly patternDegree: number;
  /**
   * The longest text that it searches for; `Infinity` when that may come from a caller; 0 when it searches for none.
   */
  readonly searchedChars: number;
  /**
   * How many alternatives and optional parts its richest pattern has. Each doubles the number of ways to match a text.
   */
  readonly choices: number;
  /** The facts that it names and that contain texts from callers. */
  readonly named: readonly (keyof Facts)[];
}

const TEXT = String.raw`(r?)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`;
const STRING = new RegExp(TEXT, "g");
const MATCHES_LITERAL = new RegExp(String.raw`\.\s*matches\s*\(\s*${TEXT}\s*\)`, "g");
const SEARCH_CALL = /\.\s*(?:contains|indexOf|lastIndexOf|split|replace)\s*\(/g;
const SEARCH_LITERAL = new RegExp(String.raw`\.\s*(?:contains|indexOf|lastIndexOf|split|replace)\s*\(\s*${TEXT}`, "g");
const LOOP_CALL = /\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\(/g;
const HOLD_TEXTS: readonly (keyof Facts)[] = ["args", "sent", "principal", "claims", "groups", "label", "tool", "uri"];
/** Applies to texts from callers. Claims are not measured: they come in a token, whose size is bounded. */
const MAX_MATCHED_CHARS = 10_000;
/** Native searches cannot be interrupted. At this product of both lengths they take some tens of milliseconds. */
const MAX_SEARCH_STEPS = 50_000_000;

/** Throws when a pattern is unsafe: callers choose the texts, so no text may keep a pattern busy without bound. */
export function costOf(text: string): ExpressionCost {
  return {
    loops: text.match(LOOP_CALL)?.length ?? 0,
    patternDegree: patternDegree(text),
    choices: Math.max(
      0,
      ...[...text.matchAll(MATCHES_LITERAL)].map(([, , quoted = ""]) => choicesOf(quoted.slice(1, -1))),
    ),
    searchedChars: searchedChars(text),
    named: HOLD_TEXTS.filter((name) => new RegExp(`\\b${name}\\b`).test(text)),
  };
}

function patternDegree(text: string): number {
  // Also rejects a call whose pattern was not found, for example because of a comment in front of the pattern.
  const calls = text.replaceAll(STRING, '""').match(/\bmatches\b/g)?.length ?? 0;
  const literals = [...text.matchAll(MATCHES_LITERAL)];
  if (literals.length < calls) throw new TypeError("matches() takes a pattern that is written out, in quotes");
  for (const [, raw, quoted = ""] of literals) {
    const inner = quoted.slice(1, -1);
    if (raw === "" && /\\[xuU0-7]/.test(inner))
      throw new TypeError(`the pattern ${quoted} names characters by number: write them as they are`);
    if (isLinear(raw === "" ? inner.replaceAll(/\\(.)/g, "$1") : inner)) continue;
    throw new TypeError(
      `the pattern ${quoted} could take for ever on a text made for it: no repetition or alternative inside a repeated group, and at most three repetitions`,
    );
  }
  return Math.max(0, ...literals.map(([, , quoted = ""]) => 1 + (quoted.match(/[*+?{]/g)?.length ?? 0)));
}

function searchedChars(text: string): number {
  const calls = text.match(SEARCH_CALL)?.length ?? 0;
  const literals = [...text.matchAll(SEARCH_LITERAL)];
  return literals.length < calls ? Infinity : Math.max(0, ...literals.map(([, , quoted = ""]) => quoted.length));
}

/**
 * An upper bound of the steps that the evaluation takes over these facts.
 *
 * @throws TypeError when a text is too long for what the expression does with it.
 */
export function stepsOf(cost: ExpressionCost, facts: Facts): number {
  const { loops, patternDegree: degree, choices, searchedChars, named } = cost;
  let values = 0;
  let texts = 0;
  let longest = 0;
  for (const name of named) {
    // Claims are not measured: a policy may be tried without any. Loops, patterns and searches over them count as
    // unbounded.
    if (name === "claims") values += loops + degree + searchedChars === 0 ? 0 : Infinity;
    else {
      const size = sizeOf(facts[name]);
      values += size.values;
      texts += size.texts;
      longest = Math.max(longest, size.longest);
    }
  }
  if (degree > 0 && longest > MAX_MATCHED_CHARS)
    throw new TypeError(`a text of ${longest} characters is too long for matches(), which takes ${MAX_MATCHED_CHARS}`);
  if (longest * Math.min(searchedChars, longest) > MAX_SEARCH_STEPS)
    throw new TypeError(`a text of ${longest} characters is too long to be searched by this rule`);
  return values ** (1 + loops) + (degree === 0 ? 0 : texts * longest ** degree * 2 ** choices);
}

interface Size {
  values: number;
  texts: number;
  longest: number;
}

/** Several rules read the same arguments. */
const sizes = new WeakMap<object, Size>();

function sizeOf(value: unknown): Size {
  const known = typeof value === "object" && value !== null ? sizes.get(value) : undefined;
  if (known !== undefined) return known;
  const size: Size = { values: 0, texts: 0, longest: 0 };
  if (typeof value !== "object" || value === null) addSize(size, value);
  else {
    size.values = 1;
    for (const [key, { value: item }] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
      addSize(size, key);
      // A getter records that a rule has read it. Measuring must not trigger it, so such an argument counts as one
      // value.
      addSize(size, item);
    }
    sizes.set(value, size);
  }
  return size;
}

function addSize(size: Size, value: unknown): void {
  size.values += 1;
  if (typeof value === "string") {
    // Comparing and joining texts takes little time per character.
    size.values += value.length / 1000;
    size.texts += 1;
    size.longest = Math.max(size.longest, value.length);
  } else if (Array.isArray(value)) {
    for (const item of value) addSize(size, item);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      addSize(size, key);
      addSize(size, item);
    }
  }
}
