import type { Asker, Subject } from "../subject.ts";
import { countsAnything, joinCaps, type Layer } from "./layer.ts";
import type { Facts } from "./expression.ts";
import { type CompiledRule, firstVerdict, type RuleVerdict, standingVerdict } from "./rule.ts";
import { type Counter, type Cap, type Objection, stricter, type Terms, tighter, sentOf } from "./terms.ts";
import { isOpenEnded, priceOf, reserveOf, type ToolEntry, toolConfirmation, toolCounter } from "./tool-entry.ts";

export interface AskerParts {
  readonly asker: Asker;
  readonly groups: readonly string[];
  /** Defaults, groups and clients: counted for the principal as a whole. */
  readonly layers: readonly Layer[];
  /** Those of the label: counted for the label, below its principal. */
  readonly labelLayers: readonly Layer[];
  readonly tools: readonly ToolEntry[];
  readonly rules: readonly CompiledRule[];
  readonly revision: string;
}

export const GROUP_FLAG = "group:";
export const MAX_GROUP_FLAGS = 16;

/** What of a call the ledger keeps in part or not at all. */
export type Watched = "args" | "claims";

/** The policy as it is for one principal under one label. Terms are worked out once for each operation. */
export class AskerPolicy {
  readonly asker: Asker;
  readonly groups: readonly string[];
  readonly rules: readonly CompiledRule[];
  readonly revision: string;
  /** The groups as the ledger keeps them, so that a call can be held against another policy later. */
  readonly groupFlags: readonly string[];
  readonly #parts: AskerParts;
  readonly #all: readonly Layer[];
  readonly #shared: readonly Counter[];
  readonly #maxCost: Cap | undefined;
  readonly #terms = new WeakMap<Subject, Terms>();

  constructor(parts: AskerParts) {
    const { asker, groups, layers, labelLayers, rules, revision } = parts;
    this.asker = asker;
    this.groups = groups;
    this.groupFlags = groups.slice(0, MAX_GROUP_FLAGS).map((group) => `${GROUP_FLAG}${group}`);
    this.rules = rules;
    this.revision = revision;
    this.#parts = parts;
    this.#all = [...layers, ...labelLayers];
    const { id } = asker.principal;
    const own = joinCaps(
      keyOf("principal", id),
      layers.map(({ caps }) => caps),
    );
    const ofLabel = joinCaps(
      keyOf("label", id, asker.label ?? ""),
      labelLayers.map(({ caps }) => caps),
    );
    this.#shared = [own, ofLabel].filter(countsAnything);
    this.#maxCost = this.#all.map(({ maxCost }) => maxCost).reduce(tighter, undefined);
  }

  /** What limits every call of this asker, whatever it is. */
  get counters(): readonly Counter[] {
    return this.#shared;
  }

  termsOf(subject: Subject): Terms {
    let terms = this.#terms.get(subject);
    if (terms === undefined) {
      terms = this.#work(subject);
      this.#terms.set(subject, terms);
    }
    return terms;
  }

  /** What the rules say of this very call. */
  judge(subject: Subject, args: unknown): RuleVerdict | undefined {
    return firstVerdict(this.#rulesFor(subject), () => this.#factsOf(subject, args));
  }

  /** The same, and what of the call the rules looked at that were tried. */
  judgeWatched(
    subject: Subject,
    args: unknown,
  ): { readonly verdict: RuleVerdict | undefined; readonly lookedAt: ReadonlySet<Watched> } {
    const lookedAt = new Set<Watched>();
    const facts = this.#factsOf(subject, args);
    const watched: Facts = {
      ...facts,
      get args() {
        lookedAt.add("args");
        return facts.args;
      },
      get sent() {
        lookedAt.add("args");
        return facts.sent;
      },
      get claims() {
        lookedAt.add("claims");
        return facts.claims;
      },
    };
    return { verdict: firstVerdict(this.#rulesFor(subject), () => watched, facts), lookedAt };
  }

  /** Nobody is asked about suggestions: a client wants them at every key that is pressed. */
  #rulesFor({ completes }: Subject): readonly CompiledRule[] {
    return completes === undefined ? this.rules : this.rules.filter(({ effect }) => effect !== "confirm");
  }

  #factsOf({ kind, name, sameAs = "", completes, scope }: Subject, args: unknown): Facts {
    const { principal, label } = this.asker;
    const known = isObject(args) ? args : {};
    return {
      args: known,
      sent: sentOf(known),
      principal: principal.id,
      claims: principal.claims,
      groups: this.groups,
      label: label ?? "",
      tool: kind === "tool" ? name : sameAs,
      scope: scope ?? "",
      kind: completes === undefined ? kind : "completion",
      uri: kind === "resource" ? name : "",
    };
  }

  /** What is closed in every case has no suggestions either. */
  #standingDenial(subject: Subject): Objection | undefined {
    const verdict = standingVerdict(this.#rulesFor(subject), () => this.#factsOf(subject, {}));
    if (verdict?.effect === "deny") return { rule: `rules.${verdict.rule.id}`, reason: verdict.reason };
    return subject.completes === undefined ? undefined : this.#standingDenial(subject.completes);
  }

  #work(subject: Subject): Terms {
    const entries = this.#parts.tools.filter(({ pattern }) => pattern.touches(subject));
    const { id } = this.asker.principal;
    const ofTool = toolCounter(keyOf("tool", id, subject.countedAs ?? subject.name), entries);
    const price = priceOf(entries, subject.price);
    const confirm = this.#all
      .map((layer) => layer.confirms(subject))
      .reduce(stricter, toolConfirmation(entries, subject));
    return {
      hidden: first(this.#all, (layer) => layer.hides(subject)),
      denied: first(this.#all, (layer) => layer.denies(subject)) ?? this.#standingDenial(subject),
      confirm: subject.completes === undefined ? confirm : undefined,
      counters: countsAnything(ofTool) ? [...this.#shared, ofTool] : this.#shared,
      price,
      reserveMicros: reserveOf(price, subject),
      maxCost: this.#maxCost,
      openEndedAs: isOpenEnded(price, subject) ? keyOf(subject.kind, subject.countedAs ?? subject.name) : undefined,
      mayCharge: subject.mayCharge === true,
    };
  }
}

/** Unambiguous, whatever characters ids and labels hold. */
export function keyOf(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}

function first<T, R>(items: readonly T[], ask: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = ask(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
