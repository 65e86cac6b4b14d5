import type { MetricFacts } from "./catalogue.ts";

/** Label values may come from outside, so the number of series is limited. Further values are counted under `other`. */
const MAX_SERIES = 500;
const OTHER = "other";
const MAX_LABEL_CHARS = 128;

export type Labels = readonly string[];

export interface Metric {
  readonly name: string;
  readonly facts: MetricFacts;
  /** The lines of the text format, without HELP and TYPE. */
  lines(): string[];
}

/** One number for each set of label values. */
export class NumberSeries implements Metric {
  readonly name: string;
  readonly facts: MetricFacts;
  readonly #values = new Map<string, { readonly labels: Labels; value: number }>();

  constructor(definition: MetricFacts & { readonly name: string }) {
    this.name = definition.name;
    this.facts = definition;
    if (definition.labels.length === 0 && definition.type === "counter") this.add([], 0);
  }

  add(labels: Labels, amount: number): void {
    if (Number.isFinite(amount)) this.#entry(labels).value += amount;
  }

  set(labels: Labels, value: number): void {
    this.#entry(labels).value = value;
  }

  /** For gauges that are set anew before each scrape: removes series that no longer exist. */
  clear(): void {
    this.#values.clear();
  }

  lines(): string[] {
    return [...this.#values.values()].map(
      ({ labels, value }) => `${this.name}${toLabels(this.facts.labels, labels)} ${value}`,
    );
  }

  #entry(labels: Labels): { value: number } {
    return findOrAdd(this.#values, labels, (kept) => ({ labels: kept, value: 0 }));
  }
}

interface Distribution {
  readonly labels: Labels;
  readonly counts: Float64Array;
  sum: number;
}

/** The distribution of values, for each set of label values. */
export class HistogramSeries implements Metric {
  readonly name: string;
  readonly facts: MetricFacts;
  readonly #bounds: readonly number[];
  readonly #values = new Map<string, Distribution>();

  constructor(definition: MetricFacts & { readonly name: string }) {
    this.name = definition.name;
    this.facts = definition;
    this.#bounds = definition.buckets ?? [];
  }

  observe(labels: Labels, value: number): void {
    const size = this.#bounds.length + 1;
    const entry = findOrAdd(this.#values, labels, (kept) => ({ labels: kept, counts: new Float64Array(size), sum: 0 }));
    let at = 0;
    while (at < this.#bounds.length && value > (this.#bounds[at] ?? 0)) at += 1;
    entry.counts[at] = (entry.counts[at] ?? 0) + 1;
    entry.sum += value;
  }

  lines(): string[] {
    return [...this.#values.values()].flatMap((entry) => this.#linesOf(entry));
  }

  #linesOf({ labels, counts, sum }: Distribution): string[] {
    const names = this.facts.labels;
    const bounds = [...this.#bounds.map(String), "+Inf"];
    let total = 0;
    const buckets = bounds.map((bound, at) => {
      total += counts[at] ?? 0;
      return `${this.name}_bucket${toLabels([...names, "le"], [...labels, bound])} ${total}`;
    });
    const shown = toLabels(names, labels);
    return [...buckets, `${this.name}_sum${shown} ${sum}`, `${this.name}_count${shown} ${total}`];
  }
}

function findOrAdd<T>(values: Map<string, T>, whole: Labels, make: (labels: Labels) => T): T {
  // Labels are cut before they are compared: two that are equal after the cut must not be two series in one scrape.
  const labels = whole.some(isLong) ? whole.map((label) => label.slice(0, MAX_LABEL_CHARS)) : whole;
  const key = labels.length === 1 ? (labels[0] ?? "") : labels.join("\n");
  const known = values.get(key);
  if (known !== undefined) return known;
  if (values.size >= MAX_SERIES && labels[0] !== OTHER) {
    return findOrAdd(
      values,
      labels.map(() => OTHER),
      make,
    );
  }
  const added = make(labels);
  values.set(key, added);
  return added;
}

function isLong(label: string): boolean {
  return label.length > MAX_LABEL_CHARS;
}

function toLabels(names: readonly string[], values: Labels): string {
  if (names.length === 0) return "";
  return `{${names.map((name, at) => `${name}="${escaped(values[at] ?? "")}"`).join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
