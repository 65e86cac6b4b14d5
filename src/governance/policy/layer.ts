import type { LayerConfig } from "../../config/governance-schema.ts";
import type { DeepReadonly } from "../../config/deep-freeze.ts";
import type { Subject } from "../subject.ts";
import { type Pattern, toPattern } from "./pattern.ts";
import {
  type Cap,
  type Confirmation,
  type Confirmer,
  type Counter,
  type Objection,
  stricter,
  tighter,
  toMicros,
} from "./terms.ts";

/** The compiled settings of `defaults`, a group, a principal or a label. */
export class Layer {
  /** Such as `groups.interns`; the first part of the name of its rules. */
  readonly id: string;
  readonly #visible: readonly Pattern[] | undefined;
  readonly #hidden: readonly Pattern[];
  readonly #allow: readonly Pattern[] | undefined;
  readonly #deny: readonly { readonly pattern: Pattern; readonly reason: string | undefined }[];
  readonly #confirm: readonly { readonly pattern: Pattern; readonly by: Confirmer }[];
  readonly #config: DeepReadonly<LayerConfig>;

  constructor(id: string, config: DeepReadonly<LayerConfig>) {
    const { visible, hidden = [], allow, deny = [], confirm = {} } = config;
    this.id = id;
    this.#config = config;
    this.#visible = visible?.map(toPattern);
    this.#hidden = hidden.map(toPattern);
    this.#allow = allow?.map(toPattern);
    this.#deny = deny.map((entry) =>
      typeof entry === "string"
        ? { pattern: toPattern(entry), reason: undefined }
        : { pattern: toPattern(entry.match), reason: entry.reason },
    );
    this.#confirm = Object.entries(confirm).map(([text, by]) => ({ pattern: toPattern(text), by }));
  }

  hides(subject: Subject): Objection | undefined {
    const hidden = this.#hidden.find((pattern) => pattern.touches(subject));
    if (hidden !== undefined) return { rule: `${this.id}.hidden`, reason: undefined };
    if (this.#visible === undefined || this.#visible.some((pattern) => pattern.matches(subject))) return undefined;
    return { rule: `${this.id}.visible`, reason: undefined };
  }

  denies(subject: Subject): Objection | undefined {
    const denied = this.#deny.find(({ pattern }) => pattern.touches(subject));
    if (denied !== undefined) return { rule: `${this.id}.deny`, reason: denied.reason };
    if (this.#allow === undefined || this.#allow.some((pattern) => pattern.matches(subject))) return undefined;
    return { rule: `${this.id}.allow`, reason: undefined };
  }

  confirms(subject: Subject): Confirmation | undefined {
    return this.#confirm
      .filter(({ pattern }) => pattern.touches(subject))
      .map(({ by }): Confirmation => ({ by, rule: `${this.id}.confirm`, reason: undefined }))
      .reduce<Confirmation | undefined>(stricter, undefined);
  }

  get caps(): Omit<Counter, "key"> {
    const { callsPerMinute, callsPerDay, concurrency, monthlyBudget } = this.#config;
    return {
      perMinute: this.#cap("callsPerMinute", callsPerMinute),
      perDay: this.#cap("callsPerDay", callsPerDay),
      concurrency: this.#cap("concurrency", concurrency),
      budget: this.#cap("monthlyBudget", monthlyBudget === undefined ? undefined : toMicros(monthlyBudget)),
    };
  }

  get maxCost(): Cap | undefined {
    const { maxCostPerCall } = this.#config;
    return this.#cap("maxCostPerCall", maxCostPerCall === undefined ? undefined : toMicros(maxCostPerCall));
  }

  #cap(name: string, limit: number | undefined): Cap | undefined {
    return limit === undefined || limit === 0 ? undefined : { limit, rule: `${this.id}.${name}` };
  }
}

/** The lowest cap of each kind among the layers, for everything that is counted under one key. */
export function joinCaps(key: string, caps: readonly Omit<Counter, "key">[]): Counter {
  const lowest = (pick: (each: Omit<Counter, "key">) => Cap | undefined): Cap | undefined =>
    caps.map(pick).reduce(tighter, undefined);
  return {
    key,
    perMinute: lowest(({ perMinute }) => perMinute),
    perDay: lowest(({ perDay }) => perDay),
    concurrency: lowest(({ concurrency }) => concurrency),
    budget: lowest(({ budget }) => budget),
  };
}

export function countsAnything({ perMinute, perDay, concurrency, budget }: Counter): boolean {
  return perMinute !== undefined || perDay !== undefined || concurrency !== undefined || budget !== undefined;
}
