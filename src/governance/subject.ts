import type { Principal } from "../auth/principal.ts";

export type SubjectKind = "tool" | "resource" | "prompt";

/** What a call costs, in units of budgets. */
export interface SubjectPrice {
  readonly fixed: number;
  readonly perSecond: number;
  readonly perEgressMb: number;
  readonly max: number | undefined;
}

/** What is asked for, as governance sees it: names and metadata, never the thing itself. */
export interface Subject {
  readonly kind: SubjectKind;
  /** The operation's native name, whichever dialect it was called by; the URI of a resource; the name of a prompt. */
  readonly name: string;
  /** Every name that a rule may call it by. */
  readonly names: readonly string[];
  /** Other ways to write the same, one of them the caller's: enough for a rule to refuse it, not to let it through. */
  readonly spellings?: readonly string[] | undefined;
  /** What it was called, where that is not its name: a refusal tells no more than the caller knows. */
  readonly calledAs?: string | undefined;
  /** Of a resource: the tool that gives the same, for rules that look at `tool`. */
  readonly sameAs?: string | undefined;
  /** What its calls are counted under, where that is not the name: callers can think of as many URIs as they like. */
  readonly countedAs?: string | undefined;
  /** Set where suggestions for its arguments are asked for: what these are for. */
  readonly completes?: Subject | undefined;
  readonly scope: string | undefined;
  readonly price: SubjectPrice;
  /** Set where its author's code can report costs of its own. */
  readonly mayCharge?: boolean | undefined;
  /** Who must say yes, as its author wants it. */
  readonly confirm: "operator" | "client" | undefined;
  /** The longest that it may run. */
  readonly timeoutMs: number;
}

/** Who asks. */
export interface Asker {
  readonly principal: Principal;
  readonly label: string | undefined;
}

export const FREE: SubjectPrice = { fixed: 0, perSecond: 0, perEgressMb: 0, max: undefined };

/** For what nobody offers: it has a name and nothing else. */
export function unknownSubject(kind: SubjectKind, name: string): Subject {
  return { kind, name, names: [name], scope: undefined, price: FREE, confirm: undefined, timeoutMs: 0 };
}
