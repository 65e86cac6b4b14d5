import { createHash } from "node:crypto";
import type { DeepReadonly } from "../../config/deep-freeze.ts";
import type { LayerConfig, PolicyConfig } from "../../config/governance-schema.ts";
import type { Asker } from "../subject.ts";
import { AskerPolicy } from "./asker-policy.ts";
import { isGlob, toMatcher } from "./pattern.ts";
import { Layer } from "./layer.ts";
import { PolicyError } from "./terms.ts";
import { type CompiledRule, compileRule, firstLine, looseningByLabel } from "./rule.ts";
import { type ToolEntry, toToolEntry } from "./tool-entry.ts";

interface NamedLayer {
  readonly name: string;
  readonly isMeant: (name: string) => boolean;
  readonly layer: Layer;
}

/** Clients can send any label, so the number of cached ones is limited. */
const MAX_KEPT_LABELS = 64;

/** All rules in force at one moment. Immutable: a reload creates a new one. */
export class Policy {
  /** A hash of the content: the same rules have the same revision on every server. */
  readonly revision: string;
  readonly config: DeepReadonly<PolicyConfig>;
  readonly #defaults: Layer;
  readonly #clients: readonly NamedLayer[];
  readonly #groups: readonly NamedLayer[];
  readonly #labels: readonly NamedLayer[];
  readonly #tools: readonly ToolEntry[];
  readonly #rules: readonly CompiledRule[];
  readonly #askers = new WeakMap<Asker["principal"], Map<string | undefined, AskerPolicy>>();

  /** @throws PolicyError with every rule that cannot be used. */
  constructor(config: DeepReadonly<PolicyConfig>) {
    this.config = config;
    this.revision = revisionOf(config);
    this.#rules = compileRules(config.rules);
    this.#defaults = new Layer("defaults", config.defaults);
    this.#clients = toLayers("clients", config.clients);
    this.#groups = toLayers("groups", config.groups);
    this.#labels = toLayers("labels", config.labels);
    this.#tools = Object.entries(config.tools).map(([glob, entry]) => toToolEntry(glob, entry));
  }

  for(asker: Asker): AskerPolicy {
    const { principal, label } = asker;
    let byLabel = this.#askers.get(principal);
    if (byLabel === undefined) {
      byLabel = new Map();
      this.#askers.set(principal, byLabel);
    }
    let found = byLabel.get(label);
    if (found === undefined) {
      if (byLabel.size >= MAX_KEPT_LABELS) byLabel.clear();
      found = this.#join(asker);
      byLabel.set(label, found);
    }
    return found;
  }

  #join(asker: Asker): AskerPolicy {
    const { principal, label } = asker;
    const groups = groupsOf(principal.claims[this.config.groupsClaim]);
    const layers = [this.#defaults, ...meantByAny(this.#groups, groups), ...meant(this.#clients, principal.id)];
    const labelLayers = label === undefined ? [] : meant(this.#labels, label);
    const { revision } = this;
    return new AskerPolicy({
      asker,
      groups,
      layers,
      labelLayers,
      tools: this.#tools,
      rules: this.#rules,
      revision,
    });
  }
}

/**
 * All groups, since any of them may tighten. Their size is bounded: the token that carries the claim fits into a
 * header.
 */
function groupsOf(claim: unknown): readonly string[] {
  const names: readonly unknown[] = Array.isArray(claim) ? claim : typeof claim === "string" ? [claim] : [];
  return [...new Set(names.filter((name) => typeof name === "string"))];
}

function toLayers(kind: string, layers: Readonly<Record<string, DeepReadonly<LayerConfig>>>): readonly NamedLayer[] {
  return Object.entries(layers).map(([name, config]) => ({
    name,
    isMeant: toMatcher(name),
    layer: new Layer(`${kind}.${name}`, config),
  }));
}

function meant(layers: readonly NamedLayer[], name: string): Layer[] {
  return layers.filter(({ isMeant }) => isMeant(name)).map(({ layer }) => layer);
}

/** Layers without a pattern are matched by set lookup: a caller may be in thousands of groups. */
function meantByAny(layers: readonly NamedLayer[], names: readonly string[]): Layer[] {
  const known = new Set(names);
  return layers
    .filter(({ name, isMeant }) => known.has(name) || (isGlob(name) && names.some(isMeant)))
    .map(({ layer }) => layer);
}

function compileRules(rules: DeepReadonly<PolicyConfig>["rules"]): readonly CompiledRule[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  const compiled = rules.flatMap((rule, index) => {
    const place = `rules[${index}] (${rule.id}): when`;
    if (seen.has(rule.id)) problems.push(`rules[${index}]: there is already a rule with the id "${rule.id}"`);
    seen.add(rule.id);
    try {
      const each = compileRule(rule);
      const loosening = looseningByLabel(each, rules.slice(index + 1));
      if (loosening !== undefined) problems.push(`${place}: ${loosening}`);
      return [each];
    } catch (error) {
      problems.push(`${place}: ${firstLine(error)}`);
      return [];
    }
  });
  if (problems.length > 0) throw new PolicyError(problems);
  return compiled;
}

function revisionOf(config: DeepReadonly<PolicyConfig>): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted(config)))
    .digest("hex")
    .slice(0, 12);
}

/** The order of keys has no meaning, so it must not change the revision. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries: [string, unknown][] = Object.entries(value);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, sorted(each)]));
}
