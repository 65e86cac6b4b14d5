import type { Confirmation, Effect, PermissionScope, Price } from "../../capability/define.ts";
import type { HandlerDescription } from "../handler-description.ts";
import { type Doc, type DocTag, tagText } from "./doc-comment.ts";
import { withoutUndefined } from "../../platform/records.ts";
import { parseLiteral } from "./literal-values.ts";
import { CONSTRAINT_TAGS, isConstraint } from "./constraint-tags.ts";

type Described = Pick<
  HandlerDescription,
  "title" | "version" | "effect" | "scope" | "timeoutMs" | "cost" | "confirm" | "skill" | "examples"
>;

/** A tag with an invalid text. */
interface TagProblem {
  readonly message: string;
  readonly fix: string;
}

/** Every tag that applies to the tool as a whole. */
const HANDLER_TAGS: readonly string[] = [
  "hidden",
  "version",
  "readonly",
  "destructive",
  "idempotent",
  "openWorld",
  "scope",
  "timeout",
  "cost",
  "confirm",
  "skill",
];

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const EFFECTS: Readonly<Record<string, keyof Effect>> = {
  readonly: "readOnly",
  destructive: "destructive",
  idempotent: "idempotent",
  openworld: "openWorld",
};

/** The tool's metadata from the tags of its function. */
export function handlerTags(doc: Doc): { fields: Described; problems: readonly TagProblem[] } {
  const problems: TagProblem[] = [];
  const read = <T>(name: string, expected: string, parse: (text: string) => T | undefined): T | undefined => {
    const text = tagText(doc, name);
    const value = text === undefined ? undefined : parse(text);
    if (text !== undefined && value === undefined) {
      problems.push({ message: `@${name} ${text}`.trim() + " cannot be read", fix: `write ${expected}` });
    }
    return value;
  };
  const fields = {
    title: read("title", "@title Words", textOrNothing),
    version: read("version", "@version 1.2.0", textOrNothing),
    effect: effectOf(doc.tags, problems),
    scope: read("scope", "@scope workspace, @scope network or @scope exec", scopeOf),
    timeoutMs: read("timeout", "@timeout 30s, 500ms, 2m or 1h", durationMs),
    cost: read("cost", "@cost 0.5, or @cost fixed=1 perSecond=0.01 perEgressMb=0.1 max=5", costOf),
    confirm: read("confirm", "@confirm, @confirm operator or @confirm client", confirmationOf),
    skill: read("skill", "@skill category/name", skillOf),
    examples: examplesOf(doc.tags),
  };
  return { fields: withoutUndefined(fields), problems };
}

function effectOf(tags: readonly DocTag[], problems: TagProblem[]): Partial<Effect> | undefined {
  const effect: { -readonly [Name in keyof Effect]?: boolean } = {};
  for (const { name, text, parameter } of tags) {
    const field = EFFECTS[name.toLowerCase()];
    if (field === undefined || parameter !== undefined) continue;
    const [word = ""] = text.split(/\s/);
    if (word === "" || word === "true" || word === "false") effect[field] = word !== "false";
    else problems.push({ message: `@${name} ${text} cannot be read`, fix: `write @${name}, or @${name} false` });
  }
  return Object.keys(effect).length === 0 ? undefined : effect;
}

function textOrNothing(text: string): string | undefined {
  return text === "" ? undefined : text;
}

function scopeOf(text: string): PermissionScope | undefined {
  return text === "workspace" || text === "network" || text === "exec" ? text : undefined;
}

/** The default is the stricter one. */
function confirmationOf(text: string): Confirmation | undefined {
  if (text === "") return "operator";
  return text === "operator" || text === "client" ? text : undefined;
}

function durationMs(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Math.round(Number(amount) * (UNITS_MS[unit] ?? Number.NaN));
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}

function costOf(text: string): number | Partial<Price> | undefined {
  const fixed = amountOf(text);
  if (fixed !== undefined) return fixed;
  const price: { -readonly [Name in keyof Price]?: number } = {};
  for (const part of text.split(/[\s,]+/)) {
    const [name = "", amount = ""] = part.split("=");
    const value = amountOf(amount);
    if (value === undefined) return undefined;
    if (name !== "fixed" && name !== "perSecond" && name !== "perEgressMb" && name !== "max") return undefined;
    price[name] = value;
  }
  return price;
}

function amountOf(text: string): number | undefined {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

function skillOf(text: string): string | undefined {
  const path = text.replace(/^skill:\/\//, "");
  return /^[\w.-]+(\/[\w.-]+)+$/.test(path) ? path : undefined;
}

/** An example that is not a literal is kept as text. */
function examplesOf(tags: readonly DocTag[]): readonly unknown[] | undefined {
  const examples = tags
    .filter(({ name, text, parameter }) => name === "example" && parameter === undefined && text !== "")
    .map(({ text }) => parseLiteral(text) ?? text);
  return examples.length === 0 ? undefined : examples;
}

/** These may also apply to the function as a whole. */
const OF_FUNCTIONS = new Set(["title", "deprecated", "example"]);

const SPELLINGS: ReadonlyMap<string, string> = new Map(
  [...HANDLER_TAGS, ...CONSTRAINT_TAGS].map((name) => [name.toLowerCase(), name]),
);

/** Reports constraint tags that apply to no parameter: their limit would not be enforced. */
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

/** Effect tags are accepted in any case. */
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
