import type * as formatsModule from "ajv-formats";
import type * as ajvModule from "ajv/dist/2020.js";
import { createRequire } from "node:module";
import { setImmediate } from "node:timers/promises";
import type { Ajv2020, ErrorObject, ValidateFunction, FuncKeywordDefinition } from "ajv/dist/2020.js";
import { TimeExceeded, withinTime } from "../platform/within-time.ts";
import { toIssues } from "./schema-issues.ts";
import type { JsonSchema, SchemaVerdict } from "./schema.ts";

/** Checking blocks the event loop. */
const LONGEST_MS = 25;
const ALL_ISSUES_MS = 15;
const MAX_ATTEMPTS = 3;
const TOO_SLOW = `checking them takes longer than ${LONGEST_MS} ms: send fewer values, or nest them less deeply`;
/**
 * Keywords whose check can take longer than linear time: references (a union that contains itself), regular expressions, and
 * formats that are more than a short text of fixed form.
 */
const NOT_SIMPLE = /"(?:\$\w*[rR]ef|pattern|patternProperties)":|"format":(?!"(?:date-time|date|time|uuid|ipv4)"[,}])/;
const SMALL_PARTS = 1000;
/** Parts of the value times characters of the schema. */
const SMALL_WORK = 2_000_000;
/** `minLength` and `maxLength` count characters. */
const CHARS_OF_A_PART = 100;

/** Checks values against a JSON Schema, in bounded time. */
export class JsonSchemaChecker {
  readonly #json: JsonSchema;
  readonly #hasDefaults: boolean;
  /** Up to so many parts, a value is checked without a time limit. */
  readonly #smallParts: number;
  #all: ValidateFunction | undefined;
  #first: ValidateFunction | undefined;

  constructor(json: JsonSchema) {
    const text = JSON.stringify(json);
    this.#json = json;
    this.#hasDefaults = text.includes('"default"');
    this.#smallParts = NOT_SIMPLE.test(text) ? 0 : Math.min(SMALL_PARTS, SMALL_WORK / text.length);
  }

  check(sent: unknown): SchemaVerdict | Promise<SchemaVerdict> {
    if (this.#smallParts > 0 && isSmall(sent, this.#smallParts)) return this.#verdict(sent, this.#toAll());
    return this.#checkLarge(sent) ?? this.#checkAgain(sent);
  }

  /** Retries, since code is several times slower when it runs for the first time or on a busy machine. */
  async #checkAgain(sent: unknown): Promise<SchemaVerdict> {
    for (let attempt = 2; attempt <= MAX_ATTEMPTS; attempt += 1) {
      // Lets the event loop serve other calls.
      await setImmediate();
      const verdict = this.#checkLarge(sent);
      if (verdict !== undefined) return verdict;
    }
    return { ok: false, issues: [{ path: "", message: TOO_SLOW }] };
  }

  /** Stops at the first issue, then collects all issues if there is time. Undefined on timeout. */
  #checkLarge(sent: unknown): SchemaVerdict | undefined {
    const first = (this.#first ??= validators().first.compile(this.#json));
    const verdict = inTime(LONGEST_MS, () => this.#verdict(sent, first));
    if (verdict?.ok !== false) return verdict;
    const all = this.#toAll();
    return inTime(ALL_ISSUES_MS, () => this.#verdict(sent, all)) ?? verdict;
  }

  #toAll(): ValidateFunction {
    return (this.#all ??= validators().all.compile(this.#json));
  }

  #verdict(sent: unknown, validate: ValidateFunction): SchemaVerdict {
    // The validator writes defaults into the value, which must not change the caller's object.
    const value: unknown = this.#hasDefaults ? copyJson(sent) : sent;
    if (validate(value)) return { ok: true, value };
    const errors: readonly ErrorObject[] = validate.errors ?? [];
    // Frees the errors and the value, which the function would hold until the next check.
    validate.errors = null;
    return { ok: false, issues: toIssues(errors, this.#json) };
  }
}

function inTime<T>(limitMs: number, run: () => T): T | undefined {
  try {
    return withinTime(limitMs, run);
  } catch (error) {
    if (error instanceof TimeExceeded) return undefined;
    throw error;
  }
}

function isSmall(value: unknown, maxParts: number): boolean {
  let parts = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === "string") parts += next.length / CHARS_OF_A_PART;
    if (parts > maxParts) return false;
    if (typeof next !== "object" || next === null) continue;
    const items: readonly unknown[] = Array.isArray(next) ? next : Object.values(next);
    parts += items.length;
    if (parts > maxParts) return false;
    for (const item of items) waiting.push(item);
  }
  return true;
}

interface Validators {
  /** Finds every issue. */
  readonly all: Ajv2020;
  /** Stops at the first issue. */
  readonly first: Ajv2020;
}

let shared: Validators | undefined;

/** Loaded with the first JSON Schema: loading the validator takes a tenth of the server's start. */
function validators(): Validators {
  if (shared === undefined) {
    const load: (name: string) => unknown = createRequire(import.meta.url);
    const ajv = load("ajv/dist/2020.js");
    const formats = load("ajv-formats");
    if (!isAjvModule(ajv) || !isFormatsModule(formats))
      throw new Error("the JSON Schema validator has an unexpected API");
    const make = (allErrors: boolean): Ajv2020 => {
      const made = new ajv.Ajv2020({ allErrors, strict: false, useDefaults: true, verbose: true });
      formats.default(made);
      made.removeKeyword("uniqueItems");
      return made.addKeyword(uniqueItems());
    };
    shared = { all: make(true), first: make(false) };
  }
  return shared;
}

function isAjvModule(value: unknown): value is typeof ajvModule {
  return typeof value === "function" && "Ajv2020" in value;
}

function isFormatsModule(value: unknown): value is typeof formatsModule.default {
  return typeof value === "function" && "default" in value;
}

/** A copy of a value that came from JSON. Unlike `structuredClone`, it can be ended when it takes too long. */
function copyJson(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyJson);
  const copy: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    if (name === "__proto__") Object.defineProperty(copy, name, { ...OWN, value: copyJson(member) });
    else copy[name] = copyJson(member);
  }
  return copy;
}

const OWN = { configurable: true, enumerable: true, writable: true };

/**
 * `uniqueItems` in time that grows with the value and not with its square. The validator's own compares every item with every
 * other.
 */
export function uniqueItems(): FuncKeywordDefinition {
  const validate: NonNullable<FuncKeywordDefinition["validate"]> = (wanted: unknown, items: unknown): boolean => {
    if (wanted !== true || !Array.isArray(items)) return true;
    const double = firstDouble(items);
    if (double === undefined) return true;
    const { i, j } = double;
    validate.errors = [
      {
        keyword: "uniqueItems",
        params: { i, j },
        message: `must NOT have duplicate items (items ## ${j} and ${i} are identical)`,
      },
    ];
    return false;
  };
  return { keyword: "uniqueItems", type: "array", schemaType: "boolean", errors: true, validate };
}

function firstDouble(items: readonly unknown[]): { readonly i: number; readonly j: number } | undefined {
  const seen = new Map<string, number>();
  for (const [i, item] of items.entries()) {
    const text = canonical(item);
    const j = seen.get(text);
    if (j !== undefined) return { i, j };
    seen.set(text, i);
  }
  return undefined;
}

/** The same text for values that JSON Schema calls equal: the order of members does not count. */
function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "undefined";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
}
