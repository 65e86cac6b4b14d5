import type { Principal } from "../auth/principal.ts";

export type SubjectKind = "tool" | "resource" | "prompt" | "completion";

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
  readonly scope: string | undefined;
  readonly price: SubjectPrice;
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
