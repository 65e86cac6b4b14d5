import { randomBytes } from "node:crypto";
import { argumentsHash } from "./arguments-hash.ts";

/** A call that waits, or waited, for an operator. */
export interface Approval {
  readonly id: string;
  readonly principal: string;
  readonly label: string | undefined;
  readonly name: string;
  readonly args: unknown;
  readonly rule: string;
  readonly reason: string | undefined;
  readonly traceId: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

export type Verdict =
  | { readonly kind: "approved"; readonly by: string }
  | { readonly kind: "denied"; readonly by: string; readonly reason: string }
  | { readonly kind: "expired" }
  | { readonly kind: "overloaded" };

export type ApprovalRequest = Omit<Approval, "id" | "createdAtMs" | "expiresAtMs">;

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
 * Calls that need an operator's yes. A yes is for one principal, one operation and exactly these arguments, is used up
 * by one call, and ends with its time: a client that gave up waiting may come back for it with the same call.
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

  /** Waits for the verdict. `whenGone` takes a function to call when nobody waits any more. */
  request(request: ApprovalRequest, whenGone: (leave: () => void) => void): Promise<Verdict> {
    const hash = argumentsHash(request.principal, request.name, request.args);
    const known = [...this.#entries.values()].find((entry) => entry.hash === hash);
    if (known?.approvedBy !== undefined) return Promise.resolve(this.#use(known, known.approvedBy));
    const entry = known ?? this.#open(request, hash);
    if (entry === undefined) return Promise.resolve({ kind: "overloaded" });
    return new Promise((resolve) => {
      entry.waiting.add(resolve);
      whenGone(() => {
        if (entry.waiting.delete(resolve)) resolve({ kind: "expired" });
      });
    });
  }

  /** A yes for whoever waits longest; for nobody in particular when nobody waits. Says no when there is no such call. */
  approve(id: string, by: string): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.approvedBy !== undefined) return false;
    const [first] = entry.waiting;
    if (first === undefined) entry.approvedBy = by;
    else {
      entry.waiting.delete(first);
      first({ kind: "approved", by });
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

  /** Gives back a yes that its call could not use, since it has to come again with a client's answer. */
  restore(request: ApprovalRequest, by: string): void {
    const entry = this.#open(request, argumentsHash(request.principal, request.name, request.args));
    if (entry !== undefined) entry.approvedBy = by;
  }

  close(): void {
    for (const entry of this.#entries.values()) this.#close(entry, { kind: "expired" });
  }

  #open(request: ApprovalRequest, hash: string): Entry | undefined {
    const ofPrincipal = this.#entries.size < MAX_PER_PRINCIPAL ? 0 : this.#countOf(request.principal);
    if (ofPrincipal >= MAX_PER_PRINCIPAL || this.#entries.size >= MAX_TOTAL) return undefined;
    const id = randomBytes(6).toString("hex");
    const createdAtMs = this.#nowMs();
    const approval = { ...request, id, createdAtMs, expiresAtMs: createdAtMs + this.#timeoutMs };
    const expiry = setTimeout(() => this.#close(entry, { kind: "expired" }), this.#timeoutMs);
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
    return { kind: "approved", by };
  }

  #close(entry: Entry, verdict: Verdict): void {
    clearTimeout(entry.expiry);
    this.#entries.delete(entry.approval.id);
    for (const resolve of entry.waiting) resolve(verdict);
    entry.waiting.clear();
  }
}
