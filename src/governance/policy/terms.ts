import type { SubjectPrice } from "../subject.ts";

/** Why something is refused, whoever asks in whatever way. */
export interface Objection {
  readonly rule: string;
  readonly reason: string | undefined;
}

/** A number that must not be passed, and the rule that set it. */
export interface Cap {
  readonly limit: number;
  readonly rule: string;
}

/** What is counted together under one key: all calls of a principal, those of a label, those of a tool. */
export interface Counter {
  readonly key: string;
  readonly perMinute: Cap | undefined;
  readonly perDay: Cap | undefined;
  readonly concurrency: Cap | undefined;
  /** In micro-units. */
  readonly budget: Cap | undefined;
}

export type Confirmer = "operator" | "client";

export interface Confirmation {
  readonly by: Confirmer;
  readonly rule: string;
  readonly reason: string | undefined;
}

/** All that the policy says of one subject to one asker, before anybody looks at arguments. */
export interface Terms {
  /** Set when the asker must not know of it. */
  readonly hidden: Objection | undefined;
  /** Set when the asker may know of it and not use it. */
  readonly denied: Objection | undefined;
  readonly confirm: Confirmation | undefined;
  readonly counters: readonly Counter[];
  readonly price: SubjectPrice;
  /** What is set aside before it runs, in micro-units. */
  readonly reserveMicros: number;
  readonly maxCost: Cap | undefined;
  /** Set where nobody can know before what it may cost: the name under which its dearest call is remembered. */
  readonly openEndedAs: string | undefined;
  /** Whether it can report costs of its own. */
  readonly mayCharge: boolean;
}

const MICROS = 1_000_000;

/** Upwards: no cost is lost in rounding. The small step back keeps 0.1 + 0.2 from becoming one micro-unit more. */
export function toMicros(units: number): number {
  return Math.ceil(units * MICROS - 1e-3);
}

export function fromMicros(micros: number): number {
  return micros / MICROS;
}

/** The lower of two caps; none is no cap. */
export function tighter(a: Cap | undefined, b: Cap | undefined): Cap | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return b.limit < a.limit ? b : a;
}

/** An operator's yes is more than a client's. */
export function stricter(a: Confirmation | undefined, b: Confirmation | undefined): Confirmation | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a.by === "client" && b.by === "operator" ? b : a;
}

/** A policy that cannot be used, with everything that is wrong with it. */
export class PolicyError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "PolicyError";
    this.problems = problems;
  }
}

type Fields = Readonly<Record<string, unknown>>;

const sentAs = new WeakMap<Fields, Fields>();

/** Notes the arguments that a caller sent beside those that rules see as `args`, where both differ. */
export function withSent(args: Fields, sent: Fields): Fields {
  if (args !== sent) sentAs.set(args, sent);
  return args;
}

/** What rules see as `sent`. */
export function sentOf(args: Fields): Fields {
  return sentAs.get(args) ?? args;
}
