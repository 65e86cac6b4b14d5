import { APPROVAL_KEY_PREFIX } from "../../governance/approval/confirm.ts";
import type { Conversation } from "../../pipeline/call.ts";
import { CallSuspended } from "../../pipeline/call.ts";
import type { ClientCapabilities } from "../exchange.ts";
import { isObject } from "../json-rpc.ts";
import { asking } from "./asking.ts";
import { assertCanAnswer, type Question, readElicitAnswer, readRoots, readSampleAnswer } from "./questions.ts";

export interface ReplayOptions {
  readonly answers: Readonly<Record<string, unknown>>;
  readonly capabilities: ClientCapabilities;
  /** Uses up the state that the answers came with. False when there is none, or it was used before. */
  readonly useState: () => boolean | Promise<boolean>;
}

/**
 * Questions on revisions whose server cannot ask: the call ends with what it wants to know, and runs again from its
 * start with the answers so far. Questions asked side by side go out together.
 */
export class Replay {
  readonly answers: Record<string, unknown>;
  readonly pending: Map<string, Question> = new Map();
  readonly #options: ReplayOptions;

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

  async #ask(question: Question, key: string): Promise<unknown> {
    const answer = Object.hasOwn(this.answers, key) ? this.answers[key] : undefined;
    const { capabilities, useState } = this.#options;
    if (isAnswer(question, answer) && (!isApproval(key) || (await useState()))) return answer;
    // What is asked again must not travel on as if it were answered.
    this.answers[key] = undefined;
    assertCanAnswer(question, capabilities);
    this.pending.set(key, question);
    // Questions of the same turn of the event loop belong to one round.
    return new Promise((_resolve, reject) => setImmediate(() => reject(new CallSuspended())));
  }
}

/** An approval is good for one call; an answer to the call's own questions is the author's to judge. */
export function isApproval(key: string): boolean {
  return key.startsWith(APPROVAL_KEY_PREFIX);
}

/** An answer of the wrong shape counts as none: the question is put again. */
function isAnswer({ method }: Question, answer: unknown): boolean {
  if (!isObject(answer)) return false;
  if (method === "elicitation/create") return readElicitAnswer(answer) !== undefined;
  return (method === "roots/list" ? readRoots(answer) : readSampleAnswer(answer)) !== undefined;
}
