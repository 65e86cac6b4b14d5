import type { Principal } from "../auth/principal.ts";

export type SubjectKind = "tool" | "resource" | "prompt";

/** What a call costs, in units of budgets. */
export interface SubjectPrice {
  readonly fixed: number;
  readonly perSecond: number;
  readonly perEgressMb: number;
  readonly max: number | undefined;
}

/** The target of a call as governance sees it: names and metadata, never the capability itself. */
export interface Subject {
  readonly kind: SubjectKind;
  /** The operation's native name, whichever dialect it was called by; the URI of a resource; the name of a prompt. */
  readonly name: string;
  /** Every name that a rule may call it by. */
  readonly names: readonly string[];
  /** Other spellings of the name, one of them the caller's. A rule may refuse by them, but not allow by them. */
  readonly spellings?: readonly string[] | undefined;
  /**
   * The name that the caller used, when it differs from `name`. A refusal reveals only what the caller already knows.
   */
  readonly calledAs?: string | undefined;
  /** Of a resource: the tool that returns the same data, for rules that check `tool`. */
  readonly sameAs?: string | undefined;
  /** The name that its calls are counted under, when that is not `name`: callers can invent any number of URIs. */
  readonly countedAs?: string | undefined;
  /** Set for a request for completions of arguments: the subject that has these arguments. */
  readonly completes?: Subject | undefined;
  readonly scope: string | undefined;
  readonly price: SubjectPrice;
  /** Whether the capability's own code can report costs. */
  readonly mayCharge?: boolean | undefined;
  /** Who must approve the call, as the author of the capability requires. */
  readonly confirm: "operator" | "client" | undefined;
  /** The longest that it may run. */
  readonly timeoutMs: number;
}

/** The principal and the client label of a call. */
export interface Asker {
  readonly principal: Principal;
  readonly label: string | undefined;
}

export const FREE: SubjectPrice = { fixed: 0, perSecond: 0, perEgressMb: 0, max: undefined };

/** For a name that no capability has. */
export function unknownSubject(kind: SubjectKind, name: string): Subject {
  return { kind, name, names: [name], scope: undefined, price: FREE, confirm: undefined, timeoutMs: 0 };
}
