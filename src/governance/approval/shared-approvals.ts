import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import type { Logger } from "../../telemetry/logger.ts";
import { type ApprovalAnswer, type ApprovalService, decideHere, approvalSchema } from "./approval-service.ts";
import type { Approval, Approvals } from "./approvals.ts";
import type { ApprovalRow, PostgresApprovals } from "./postgres-approvals.ts";

export interface SharedApprovalsOptions {
  /** The calls that wait on this server, which alone decides whether they run. */
  readonly approvals: Approvals;
  readonly store: PostgresApprovals;
  /** Servers that share this key trust each other's operators. An answer from any other writer approves nothing. */
  readonly clusterKey: string;
  /** The arguments as JSON, bounded and without secrets. */
  readonly shownArgs: (args: unknown) => string;
  readonly logger: Logger;
}

const LOOK_MS = 400;
const PATIENCE_MS = 5000;
const ASK_MS = 100;

const answerSchema = z.object({
  decision: z.enum(["approve", "deny"]),
  by: z.string(),
  reason: z.string(),
  mac: z.string(),
});

/** Shows the waiting calls of all servers on each of them. The server where a call waits applies the decision. */
export class SharedApprovals implements ApprovalService {
  readonly #options: SharedApprovalsOptions;
  readonly #server = randomBytes(9).toString("base64url");
  readonly #key: Buffer;
  readonly #texts = new WeakMap<Approval, string>();
  readonly #timer: NodeJS.Timeout;
  #others: ReadonlyMap<string, Approval> = new Map();
  #looking: Promise<void> | undefined;
  #isInTrouble = false;

  constructor(options: SharedApprovalsOptions) {
    this.#options = options;
    this.#key = Buffer.from(hkdfSync("sha256", options.clusterKey, "", "owlclaw approvals v1", 32));
    this.#timer = setInterval(() => void this.#look(), LOOK_MS).unref();
  }

  known(): readonly Approval[] {
    const nowMs = Date.now();
    const others = [...this.#others.values()].filter(({ expiresAtMs }) => expiresAtMs > nowMs);
    return [...this.#options.approvals.list(), ...others].toSorted((a, b) => a.createdAtMs - b.createdAtMs);
  }

  async list(): Promise<readonly Approval[]> {
    // A sync in progress may have started too early.
    await this.#looking;
    await this.#look();
    return this.known();
  }

  async decide(answer: ApprovalAnswer): Promise<boolean> {
    const { approvals, store } = this.#options;
    if (approvals.get(answer.id) !== undefined) return decideHere(approvals, answer);
    const { id, decision, by, reason } = answer;
    const text = JSON.stringify({ decision, by, reason, mac: this.#macOf(answer).toString("base64url") });
    if (!(await store.answer(id, text))) return false;
    for (const endMs = performance.now() + PATIENCE_MS; performance.now() < endMs;) {
      await sleep(ASK_MS);
      const isDone = await store.isDone(id);
      if (isDone !== undefined) return isDone;
    }
    return !(await store.withdraw(id)) && (await store.isDone(id)) === true;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
    // Rows that remain expire within seconds.
    await this.#options.store.leave(this.#server).catch(() => undefined);
    await this.#options.store.close();
  }

  #look(): Promise<void> {
    this.#looking ??= this.#sync()
      .then(
        () => {
          this.#isInTrouble = false;
        },
        (error: unknown) => {
          if (!this.#isInTrouble)
            this.#options.logger.error("what waits for operators on other servers is not known", { error });
          this.#isInTrouble = true;
          this.#others = new Map();
        },
      )
      .finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #sync(): Promise<void> {
    const { approvals, store } = this.#options;
    const here = approvals.list().map((approval) => ({ id: approval.id, approval: this.#textOf(approval) }));
    const rows = await store.sync(this.#server, here, [...this.#others.keys()]);
    const others = new Map<string, Approval>();
    for (const row of rows) {
      if (row.server === this.#server) await this.#obey(row);
      else if (row.answer === null) this.#hear(row, others);
    }
    this.#others = others;
  }

  #textOf(approval: Approval): string {
    let text = this.#texts.get(approval);
    if (text === undefined) {
      const args: unknown = JSON.parse(this.#options.shownArgs(approval.args));
      const isCut = JSON.stringify(args) !== JSON.stringify(approval.args);
      text = JSON.stringify({ ...approval, args, isCut });
      this.#texts.set(approval, text);
    }
    return text;
  }

  #hear({ id, approval }: ApprovalRow, others: Map<string, Approval>): void {
    const known = approval === null ? this.#others.get(id) : toApproval(approval);
    if (known?.id === id) others.set(id, known);
  }

  /** Applies an answer to a call that waits here. Operators cannot decide calls of their own, on any server. */
  async #obey({ id, answer: text, is_done: isDone }: ApprovalRow): Promise<void> {
    if (text === null || isDone !== null) return;
    const { approvals, store, logger } = this.#options;
    const answer = this.#read(id, text);
    const approval = approvals.get(id);
    const isGood = answer !== undefined && approval !== undefined && approval.principal !== answer.by;
    if (answer === undefined) logger.warning("an answer to a call that waits was not written by a server", { id });
    await store.setDone(id, isGood && decideHere(approvals, answer));
  }

  #read(id: string, text: string): ApprovalAnswer | undefined {
    const { success, data } = answerSchema.safeParse(parsed(text));
    if (!success) return undefined;
    const { mac, ...rest } = data;
    const answer = { id, ...rest };
    const [given, wanted] = [Buffer.from(mac, "base64url"), this.#macOf(answer)];
    return given.length === wanted.length && timingSafeEqual(given, wanted) ? answer : undefined;
  }

  #macOf({ id, decision, by, reason }: ApprovalAnswer): Buffer {
    return createHmac("sha256", this.#key)
      .update(JSON.stringify([id, decision, by, reason]))
      .digest();
  }
}

function toApproval(text: string): Approval | undefined {
  const { success, data } = approvalSchema.safeParse(parsed(text));
  return success ? { ...data, label: data.label, reason: data.reason } : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
