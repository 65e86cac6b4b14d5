import type { SubjectPrice } from "../subject.ts";

/** The rule that refuses a subject to a caller, whatever the arguments. */
export interface Objection {
  readonly rule: string;
  readonly reason: string | undefined;
}

/** A limit, and the rule that set it. */
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

/** What the policy says about one subject for one caller, before any arguments are checked. */
export interface Terms {
  /** Set when the subject is hidden from the caller. */
  readonly hidden: Objection | undefined;
  /** Set when the caller may see the subject but not use it. */
  readonly denied: Objection | undefined;
  readonly confirm: Confirmation | undefined;
  readonly counters: readonly Counter[];
  readonly price: SubjectPrice;
  /** What is reserved before the call runs, in micro-units. */
  readonly reserveMicros: number;
  readonly maxCost: Cap | undefined;
  /** Set when the cost has no known upper bound: the name under which the highest cost so far is remembered. */
  readonly openEndedAs: string | undefined;
  /** Whether the capability's own code can report costs. */
  readonly mayCharge: boolean;
}

const MICROS = 1_000_000;

/** Rounds up, so that no cost is lost. The small offset keeps 0.1 + 0.2 from becoming one micro-unit more. */
export function toMicros(units: number): number {
  return Math.ceil(units * MICROS - 1e-3);
}

export function fromMicros(micros: number): number {
  return micros / MICROS;
}

/** The lower of two caps; `undefined` means no cap. */
export function tighter(a: Cap | undefined, b: Cap | undefined): Cap | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return b.limit < a.limit ? b : a;
}

/** An operator's approval is stricter than a client's. */
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

/** Remembers the arguments that a caller sent, when they differ from those that rules see as `args`. */
export function withSent(args: Fields, sent: Fields): Fields {
  if (args !== sent) sentAs.set(args, sent);
  return args;
}

/** What rules see as `sent`. */
export function sentOf(args: Fields): Fields {
  return sentAs.get(args) ?? args;
}
