import { CONSTRAINT_TAGS, isConstraint } from "./constraint-tags.ts";
import type { Doc, DocTag } from "./doc-comment.ts";
import { HANDLER_TAGS, type TagProblem } from "./handler-tags.ts";

/** These may also stand for the function as a whole. */
const OF_FUNCTIONS = new Set(["title", "deprecated", "example"]);

const SPELLINGS: ReadonlyMap<string, string> = new Map(
  [...HANDLER_TAGS, ...CONSTRAINT_TAGS].map((name) => [name.toLowerCase(), name]),
);

/** Tags that would be read by nobody: a limit that was written and does not hold is worse than none. */
export function strayTags({ tags }: Doc, fields: readonly string[]): readonly TagProblem[] {
  return tags.flatMap((tag): TagProblem[] => {
    const known = SPELLINGS.get(tag.name.toLowerCase());
    if (known === undefined) return [];
    if (!isReadAs(known, tag.name)) return [{ message: `@${tag.name} is not a tag`, fix: `write @${known}` }];
    if (!isConstraint(tag.name) || (OF_FUNCTIONS.has(tag.name) && tag.parameter === undefined)) return [];
    const named = tag.parameter ?? tag.text.split(/\s+/)[0] ?? "";
    if (fields.includes(named) || fields.includes(named.slice(named.indexOf(".") + 1))) return [];
    return [{ message: `${shown(tag)} names no parameter`, fix: fixFor(tag, fields) }];
  });
}

/** The tags of effects are read in any case. */
function isReadAs(known: string, written: string): boolean {
  return known === written || ["readonly", "destructive", "idempotent", "openWorld"].includes(known);
}

function shown({ name, text, parameter }: DocTag): string {
  return parameter === undefined ? `@${name} ${text}`.trim() : `@${name} on the line of @param ${parameter}`;
}

function fixFor({ name }: DocTag, fields: readonly string[]): string {
  if (fields.length === 0) return "remove it: the function takes no arguments";
  return `write @${name} NAME VALUE, or put it on the line of its @param; the names are ${fields.join(", ")}`;
}
