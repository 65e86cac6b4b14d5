import { randomBytes, createHash } from "node:crypto";

/** A call that waits, or waited, for the decision of an operator. */
export interface Approval {
  readonly id: string;
  readonly principal: string;
  readonly label: string | undefined;
  /** A tool and a prompt may have the same name. */
  readonly kind: string;
  readonly name: string;
  readonly args: unknown;
  /** Of principal, operation and arguments. */
  readonly hash: string;
  /** Whether `args` is incomplete: servers share no more of the arguments than the ledger would hold. */
  readonly isCut?: boolean;
  readonly rule: string;
  readonly reason: string | undefined;
  readonly traceId: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** An operator's approval. It is valid until it expires, even if its call is repeated several times. */
export interface Yes {
  readonly by: string;
  readonly expiresAtMs: number;
}

export type Verdict =
  | ({ readonly kind: "approved" } & Yes)
  | { readonly kind: "denied"; readonly by: string; readonly reason: string }
  | { readonly kind: "expired" }
  /** The caller has stopped waiting. */
  | { readonly kind: "gone" }
  | { readonly kind: "overloaded" };

export type ApprovalRequest = Omit<Approval, "id" | "hash" | "isCut" | "createdAtMs" | "expiresAtMs">;

interface Entry {
  readonly approval: Approval;
  readonly hash: string;
  readonly waiting: Set<(verdict: Verdict) => void>;
  readonly expiry: NodeJS.Timeout;
  approvedBy: string | undefined;
}

const MAX_PER_PRINCIPAL = 20;
const MAX_TOTAL = 1000;

/**
 * Calls that need an operator's approval. An approval is for one principal, one operation and exactly these arguments,
 * is used up by one call, and expires. A client that stopped waiting can use it by repeating the same call.
 */
export class Approvals {
  readonly #timeoutMs: number;
  readonly #nowMs: () => number;
  readonly #entries = new Map<string, Entry>();

  constructor({ timeoutMs, nowMs = Date.now }: { readonly timeoutMs: number; readonly nowMs?: () => number }) {
    this.#timeoutMs = timeoutMs;
    this.#nowMs = nowMs;
  }

  list(): readonly Approval[] {
    return [...this.#entries.values()]
      .filter(({ approvedBy }) => approvedBy === undefined)
      .map(({ approval }) => approval);
  }

  get(id: string): Approval | undefined {
    const entry = this.#entries.get(id);
    return entry?.approvedBy === undefined ? entry?.approval : undefined;
  }

  /** Waits for the verdict. `whenGone` receives a function to call when the caller stops waiting. */
  request(request: ApprovalRequest, whenGone: (leave: () => void) => void): Promise<Verdict> {
    const hash = argumentsHash(request);
    const same = [...this.#entries.values()].filter((entry) => entry.hash === hash);
    const known = same.find(({ approvedBy }) => approvedBy !== undefined) ?? same[0];
    if (known?.approvedBy !== undefined) return Promise.resolve(this.#use(known, known.approvedBy));
    const entry = known ?? this.#open(request, hash);
    if (entry === undefined) return Promise.resolve({ kind: "overloaded" });
    return new Promise((resolve) => {
      entry.waiting.add(resolve);
      whenGone(() => {
        if (entry.waiting.delete(resolve)) resolve({ kind: "gone" });
      });
    });
  }

  /**
   * Approves the call that has waited longest. When none is waiting, the approval is kept for the next one. Returns
   * false for an unknown id.
   */
  approve(id: string, by: string): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.approvedBy !== undefined) return false;
    const [first] = entry.waiting;
    if (first === undefined) entry.approvedBy = by;
    else {
      entry.waiting.delete(first);
      first({ kind: "approved", by, expiresAtMs: entry.approval.expiresAtMs });
      if (entry.waiting.size === 0) this.#close(entry, { kind: "expired" });
    }
    return true;
  }

  deny(id: string, by: string, reason: string): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined) return false;
    this.#close(entry, { kind: "denied", by, reason });
    return true;
  }

  /**
   * Restores an approval that its call could not use, since it must be repeated with a client's answer. The limits on
   * waiting calls do not apply: there are never more restored approvals than operators gave.
   */
  restore(request: ApprovalRequest, { by, expiresAtMs }: Yes): void {
    if (expiresAtMs <= this.#nowMs()) return;
    const hash = argumentsHash(request);
    this.#add({ request, hash, expiresAtMs }).approvedBy = by;
  }

  close(): void {
    for (const entry of this.#entries.values()) this.#close(entry, { kind: "expired" });
  }

  #open(request: ApprovalRequest, hash: string): Entry | undefined {
    const ofPrincipal = this.#entries.size < MAX_PER_PRINCIPAL ? 0 : this.#countOf(request.principal);
    if (ofPrincipal >= MAX_PER_PRINCIPAL || this.#entries.size >= MAX_TOTAL) return undefined;
    return this.#add({ request, hash, expiresAtMs: this.#nowMs() + this.#timeoutMs });
  }

  #add({ request, hash, expiresAtMs }: { request: ApprovalRequest; hash: string; expiresAtMs: number }): Entry {
    const id = randomBytes(6).toString("hex");
    const createdAtMs = this.#nowMs();
    const approval = { ...request, id, hash, createdAtMs, expiresAtMs };
    const expiry = setTimeout(() => this.#close(entry, { kind: "expired" }), expiresAtMs - createdAtMs);
    expiry.unref();
    const entry: Entry = { approval, hash, waiting: new Set(), expiry, approvedBy: undefined };
    this.#entries.set(id, entry);
    return entry;
  }

  #countOf(principal: string): number {
    return [...this.#entries.values()].filter(({ approval }) => approval.principal === principal).length;
  }

  #use(entry: Entry, by: string): Verdict {
    this.#close(entry, { kind: "expired" });
    return { kind: "approved", by, expiresAtMs: entry.approval.expiresAtMs };
  }

  #close(entry: Entry, verdict: Verdict): void {
    clearTimeout(entry.expiry);
    this.#entries.delete(entry.approval.id);
    for (const resolve of entry.waiting) resolve(verdict);
    entry.waiting.clear();
  }
}

/** What an approval is for. */
export interface ApprovedCall {
  readonly principal: string;
  readonly kind: string;
  readonly name: string;
  readonly args: unknown;
}

/** The same call has the same hash, whatever the order of the keys in its arguments. */
export function argumentsHash({ principal, kind, name, args }: ApprovedCall): string {
  return createHash("sha256")
    .update(JSON.stringify([principal, kind, name, args], sortKeys))
    .digest("base64url");
}

/** Returns an object, not a list of pairs, which would have the same hash as a list that a client sends. */
function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries: [string, unknown][] = Object.entries(value);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
