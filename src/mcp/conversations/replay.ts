import type { Conversation } from "../../call/call.ts";
import { CallSuspended } from "../../call/call.ts";
import type { ClientCapabilities } from "../exchange.ts";
import { isObject } from "../json-rpc.ts";
import { assertCanAnswer, type Question, readElicitAnswer, readRoots, readSampleAnswer, asking } from "./questions.ts";

export interface ReplayOptions {
  readonly answers: Readonly<Record<string, unknown>>;
  readonly capabilities: ClientCapabilities;
  /** Whether the round before has paid the fixed price of the call. */
  readonly isPaid: boolean;
  /** Uses up the state that the answers came with. False when there is none, or it was used before. */
  readonly useState: () => Promise<boolean>;
}

/**
 * Questions on revisions whose server cannot ask: the call ends with what it wants to know, and runs again from its
 * start with the answers so far. Questions asked side by side go out together.
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

  /** Asked when the work begins: from here on this round, or one before, has paid the fixed price. */
  async isPaid(): Promise<boolean> {
    this.hasPaid = true;
    return (await this.#isFirstUse()) && this.#options.isPaid;
  }

  /** A state that was used before answers nothing: the questions are put again. */
  #isFirstUse(): Promise<boolean> {
    return (this.#used ??= this.#options.useState());
  }

  async #ask(question: Question, key: string): Promise<unknown> {
    const answer = Object.hasOwn(this.answers, key) ? this.answers[key] : undefined;
    const { capabilities } = this.#options;
    if (isAnswer(question, answer) && (await this.#isFirstUse())) return answer;
    // What is asked again must not travel on as if it were answered.
    this.answers[key] = undefined;
    assertCanAnswer(question, capabilities);
    this.pending.set(key, question);
    // Questions of the same turn of the event loop belong to one round.
    return new Promise((_resolve, reject) => setImmediate(() => reject(new CallSuspended())));
  }
}

/** An answer of the wrong shape counts as none: the question is put again. */
function isAnswer({ method }: Question, answer: unknown): boolean {
  if (!isObject(answer)) return false;
  if (method === "elicitation/create") return readElicitAnswer(answer) !== undefined;
  return (method === "roots/list" ? readRoots(answer) : readSampleAnswer(answer)) !== undefined;
}
