import type { Conversation } from "../../call/call.ts";
import { CallSuspended } from "../../call/call.ts";
import type { ClientCapabilities } from "../exchange.ts";
import { isObject } from "../json-rpc.ts";
import { assertCanAnswer, type Question, readElicitAnswer, readRoots, readSampleAnswer, asking } from "./questions.ts";

export interface ReplayOptions {
  readonly answers: Readonly<Record<string, unknown>>;
  readonly capabilities: ClientCapabilities;
  /** Whether an earlier round has paid the fixed price of the call. */
  readonly isPaid: boolean;
  /** Uses up the state that the answers came with. False when it was used before; true without a state. */
  readonly useState: () => Promise<boolean>;
}

/**
 * Asks questions on revisions whose server cannot send requests: the call ends with its questions, and runs again from
 * its start with the answers so far. Questions that are asked at the same time are sent together.
 */
export class Replay {
  readonly answers: Record<string, unknown>;
  readonly pending: Map<string, Question> = new Map();
  readonly #options: ReplayOptions;
  #used: Promise<boolean> | undefined;
  /** The fixed price of the call is paid, by this round or by one before. */
  hasPaid = false;

  constructor(options: ReplayOptions) {
    this.answers = { ...options.answers };
    this.#options = options;
  }

  get isSuspended(): boolean {
    return this.pending.size > 0;
  }

  questions(): Pick<Conversation, "elicit" | "sample" | "roots"> {
    return asking((question, key) => this.#ask(question, key));
  }

  /** Called when the work begins: from now on this round, or an earlier one, has paid the fixed price. */
  async isPaid(): Promise<boolean> {
    this.hasPaid = true;
    return (await this.#isFirstUse()) && this.#options.isPaid;
  }

  /** A state that was used before answers nothing: its questions are asked again. */
  #isFirstUse(): Promise<boolean> {
    return (this.#used ??= this.#options.useState());
  }

  async #ask(question: Question, key: string): Promise<unknown> {
    const answer = Object.hasOwn(this.answers, key) ? this.answers[key] : undefined;
    const { capabilities } = this.#options;
    if (isAnswer(question, answer) && (await this.#isFirstUse())) return answer;
    // A question that is asked again must not be in the next state as answered.
    this.answers[key] = undefined;
    assertCanAnswer(question, capabilities);
    this.pending.set(key, question);
    // Questions of the same turn of the event loop belong to one round.
    return new Promise((_resolve, reject) => setImmediate(() => reject(new CallSuspended())));
  }
}

/** An answer of the wrong shape does not count: the question is asked again. */
function isAnswer({ method }: Question, answer: unknown): boolean {
  if (!isObject(answer)) return false;
  if (method === "elicitation/create") return readElicitAnswer(answer) !== undefined;
  return (method === "roots/list" ? readRoots(answer) : readSampleAnswer(answer)) !== undefined;
}
