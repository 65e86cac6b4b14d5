import { z } from "zod";
import type { ConfigIssue, ConfigLayer } from "./config-error.ts";
import { CONFIG_KEYS, type ConfigKey, envName } from "./keys.ts";
import { showValue } from "./mask.ts";

/** Where a value was set. */
export interface Origin {
  readonly layer: ConfigLayer;
  /** For example `mcp-server.yaml:12:3`, `MCP_SERVER_PORT`, `--port`. */
  readonly source: string;
}

/** A value that one layer sets for a key. */
export interface Candidate {
  readonly key: ConfigKey;
  readonly value: unknown;
  readonly origin: Origin;
}

export interface LayerValues {
  readonly candidates: readonly Candidate[];
  readonly issues: readonly ConfigIssue[];
}

/**
 * Validates a value of any layer, also one that a higher layer overrides: its error must not appear only when the
 * override is removed.
 */
export function checkCandidate({ key, value, origin }: Candidate): ConfigIssue[] {
  const result = key.schema.safeParse(value === undefined ? null : value);
  if (result.success) return [];
  return result.error.issues.map((issue) => {
    const path = `${key.path}${issue.path.map(toStep).join("")}`;
    const shown: unknown = key.secret ? value : issue.path.reduce(stepInto, value);
    return {
      path,
      value: showValue(key.path, shown),
      reason: lowerFirst(reasonOf(issue)),
      fix: fixOf(issue) ?? fixFor(key, shown),
      layer: origin.layer,
      source: origin.source,
    };
  });
}

function toStep(step: PropertyKey): string {
  return typeof step === "number" ? `[${step}]` : `.${String(step)}`;
}

function stepInto(value: unknown, step: PropertyKey): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, step)?.value : undefined;
}

/** For an invalid name in a map, zod nests the message one level deeper. */
function reasonOf(issue: z.core.$ZodIssue): string {
  return (issue.code === "invalid_key" ? issue.issues[0]?.message : undefined) ?? issue.message;
}

/** Custom rules may include their own fix. */
function fixOf(issue: z.core.$ZodIssue): string | undefined {
  const fix: unknown = issue.code === "custom" ? issue.params?.["fix"] : undefined;
  return typeof fix === "string" ? fix : undefined;
}

export function badText(candidate: Candidate, reason: string): ConfigIssue {
  const { key, value, origin } = candidate;
  return {
    path: key.path,
    value: showValue(key.path, value),
    reason,
    fix: fixFor(key, value),
    layer: origin.layer,
    source: origin.source,
  };
}

/** Keys of earlier versions, and their replacements. */
const REMOVED_KEYS: ReadonlyMap<string, { readonly reason: string; readonly fix: string }> = new Map([
  [
    "limits.url",
    {
      reason:
        "OwlClaw no longer uses Redis: calls, sessions and events are kept in the PostgreSQL database of store.url",
      fix: "remove it, and set store.url to a postgres:// URL where several servers work together",
    },
  ],
]);

export function removedKey(path: string, origin: Origin): ConfigIssue | undefined {
  const removed = REMOVED_KEYS.get(path);
  return removed && { path, ...removed, layer: origin.layer, source: origin.source };
}

/** The removed key that this environment variable set. */
export function removedKeyOf(variable: string): string | undefined {
  return [...REMOVED_KEYS.keys()].find((path) => envName(path) === variable);
}

export function unknownKey(path: string, value: unknown, origin: Origin): ConfigIssue {
  const removed = removedKey(path, origin);
  if (removed !== undefined) return removed;
  const guess = nearestPath(
    path,
    CONFIG_KEYS.map((key) => key.path),
  );
  return {
    path,
    value: showValue(path, value),
    reason: "there is no such key",
    fix:
      guess === undefined
        ? "remove it; `owlclaw mcp-server config show` lists the keys"
        : `did you mean ${guess}? Otherwise remove it`,
    layer: origin.layer,
    source: origin.source,
  };
}

/**
 * Reports one key that is set under two names to different values. Picking one of them could allow what the other
 * denies.
 */
export function contradictions(candidates: readonly Candidate[]): ConfigIssue[] {
  const first = new Map<string, Candidate>();
  const issues: ConfigIssue[] = [];
  for (const candidate of candidates) {
    const { key, value, origin } = candidate;
    const other = first.get(key.path);
    if (other === undefined) first.set(key.path, candidate);
    else if (JSON.stringify(other.value) !== JSON.stringify(value)) {
      issues.push({
        path: key.path,
        value: showValue(key.path, value),
        reason: `${other.origin.source} and ${origin.source} both set it, to different values`,
        fix: `keep one of them, ${origin.layer === "env" ? envName(key.path) : key.path} for example`,
        layer: origin.layer,
        source: origin.source,
      });
    }
  }
  return issues;
}

function fixFor(key: ConfigKey, value: unknown): string {
  const guess = key.type === "choice" && typeof value === "string" ? nearest(value, key.choices) : undefined;
  const hint = guess === undefined ? "" : ` (did you mean ${guess}?)`;
  return `set ${key.path} to ${expectation(key)}${hint}`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** What values a key accepts, in words: "an integer from 0 to 65535". */
export function expectation(key: ConfigKey): string {
  switch (key.type) {
    case "boolean":
      return "true or false";
    case "choice":
      return `one of ${key.choices.join(", ")}`;
    case "integer":
      return `an integer${range(key)}`;
    case "number":
      return `a number${range(key)}`;
    case "list":
      return `a list of strings (${key.description})`;
    case "map":
      return `names with values (${key.description})`;
    case "string":
      return `text (${key.description})`;
  }
}

function range(key: ConfigKey): string {
  const bare = key.schema instanceof z.ZodDefault ? key.schema.unwrap() : key.schema;
  if (!(bare instanceof z.ZodNumber)) return "";
  const { minValue, maxValue } = bare;
  if (minValue === null || maxValue === null) return "";
  return minValue === 0 && key.type === "number" ? ` above 0, up to ${maxValue}` : ` from ${minValue} to ${maxValue}`;
}

/** The candidate closest to a mistyped word. Undefined when none is close. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const known = candidate.toLowerCase();
    // A prefix such as "dev" is an abbreviation, so it counts as close.
    const distance = wanted.length > 1 && known.startsWith(wanted) ? 1 : editDistance(wanted, known);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** The same for dotted paths. A key with the same last name in another section is preferred. */
export function nearestPath(path: string, candidates: readonly string[]): string | undefined {
  const last = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  const sameName = candidates.filter(
    (candidate) => candidate.toLowerCase().endsWith(`.${last}`) || candidate.toLowerCase() === last,
  );
  return (sameName.length === 1 ? sameName[0] : nearest(path, sameName)) ?? nearest(path, candidates);
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const substituted = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      const removed = (previous[column] ?? 0) + 1;
      const inserted = (current[column - 1] ?? 0) + 1;
      current.push(Math.min(substituted, removed, inserted));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
