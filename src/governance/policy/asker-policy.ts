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
  /** The layers of the label: counted for each label of a principal. */
  readonly labelLayers: readonly Layer[];
  readonly tools: readonly ToolEntry[];
  readonly rules: readonly CompiledRule[];
  readonly revision: string;
}

export const GROUP_FLAG = "group:";
export const MAX_GROUP_FLAGS = 16;

/** The parts of a call that the ledger keeps only partly or not at all. */
export type Watched = "args" | "claims";

/** The policy for one principal under one label. Terms are computed once for each subject. */
export class AskerPolicy {
  readonly asker: Asker;
  readonly groups: readonly string[];
  readonly rules: readonly CompiledRule[];
  readonly revision: string;
  /** The groups as the ledger keeps them, so that a recorded call can be checked against another policy later. */
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

  /** The counters of every call of this caller, whatever it calls. */
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

  /** The verdict of the rules on this call. */
  judge(subject: Subject, args: unknown): RuleVerdict | undefined {
    return firstVerdict(this.#rulesFor(subject), () => this.#factsOf(subject, args));
  }

  /** The same, and which parts of the call the evaluated rules read. */
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

  /** Completions need no approval: a client requests them at every keystroke. */
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

  /** What the rules deny whatever the arguments are. A denied subject has no completions either. */
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

/** Unambiguous for any characters in ids and labels. */
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
