import type { Conversation } from "../../pipeline/call.ts";
import { CallSuspended } from "../../pipeline/call.ts";
import type { ClientCapabilities } from "../exchange.ts";
import { isObject } from "../json-rpc.ts";
import { asking } from "./asking.ts";
import { assertCanAnswer, type Question, readElicitAnswer, readRoots, readSampleAnswer } from "./questions.ts";

/**
 * Questions on revisions whose server cannot ask: the call ends with what it wants to know, and runs again from its
 * start with the answers so far. Questions asked side by side go out together.
 */
export class Replay {
  readonly answers: Record<string, unknown>;
  readonly pending: Map<string, Question> = new Map();
  readonly #capabilities: ClientCapabilities;

  constructor(answers: Readonly<Record<string, unknown>>, capabilities: ClientCapabilities) {
    this.answers = { ...answers };
    this.#capabilities = capabilities;
  }

  get isSuspended(): boolean {
    return this.pending.size > 0;
  }

  questions(): Pick<Conversation, "elicit" | "sample" | "roots"> {
    return asking((question, key) => this.#ask(question, key));
  }

  #ask(question: Question, key: string): Promise<unknown> {
    const answer = Object.hasOwn(this.answers, key) ? this.answers[key] : undefined;
    if (isAnswer(question, answer)) return Promise.resolve(answer);
    assertCanAnswer(question, this.#capabilities);
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
