import type { AskOptions } from "../../capability/context.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Conversation } from "../../call/call.ts";
import {
  elicitQuestion,
  type Question,
  readElicitAnswer,
  readRoots,
  readSampleAnswer,
  ROOTS_QUESTION,
  sampleQuestion,
} from "./questions.ts";

/** Puts a question to the client and brings its answer, unchecked. */
export type Ask = (question: Question, key: string) => Promise<unknown>;

/** The three questions of a conversation over one way of asking. Questions without a name are named by their order. */
export function asking(ask: Ask): Pick<Conversation, "elicit" | "sample" | "roots"> {
  let asked = 0;
  const put = async <T>(
    question: Question,
    { key }: AskOptions,
    read: (value: unknown) => T | undefined,
  ): Promise<T> => {
    asked += 1;
    const answer = read(await ask(question, key ?? `question_${asked}`));
    if (answer === undefined)
      throw new OwlError("execution_error", `the client's answer to "${question.method}" makes no sense`);
    return answer;
  };
  return {
    elicit: (request, options = {}) => put(elicitQuestion(request), options, readElicitAnswer),
    sample: (request, options = {}) => put(sampleQuestion(request), options, readSampleAnswer),
    roots: (options = {}) => put(ROOTS_QUESTION, options, readRoots),
  };
}
