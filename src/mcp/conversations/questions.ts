import type {
  ElicitAnswer,
  ElicitForm,
  ElicitUrl,
  Root,
  SampleAnswer,
  SampleRequest,
  AskOptions,
} from "../../capability/context.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { ClientCapabilities } from "../exchange.ts";
import { isObject } from "../json-rpc.ts";
import type { Conversation } from "../../call/call.ts";

/** A question to the client in the format of MCP, whether it is sent as a request or inside a result. */
export interface Question {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params: Readonly<Record<string, unknown>>;
}

export function elicitQuestion(request: ElicitForm | ElicitUrl): Question {
  const mode = "url" in request ? "url" : "form";
  return { method: "elicitation/create", params: { mode, ...request } };
}

export function sampleQuestion(request: SampleRequest): Question {
  return { method: "sampling/createMessage", params: { ...request } };
}

export const ROOTS_QUESTION: Question = { method: "roots/list", params: {} };

/** The capability that a client must have declared before it may be asked this. */
function requiredCapability({ method, params }: Question): ClientCapabilities {
  if (method === "sampling/createMessage") return { sampling: {} };
  if (method === "roots/list") return { roots: {} };
  return { elicitation: params["mode"] === "url" ? { url: {} } : {} };
}

export function assertCanAnswer(question: Question, declared: ClientCapabilities): void {
  const required = requiredCapability(question);
  if (required.sampling !== undefined && declared.sampling !== undefined) return;
  if (required.roots !== undefined && declared.roots !== undefined) return;
  if (required.elicitation !== undefined && canElicit(question, declared)) return;
  throw new OwlError(
    "missing_capability",
    `the client does not declare what "${question.method}" needs, so it cannot be asked`,
    {
      facts: { requiredCapabilities: required },
    },
  );
}

/** A bare `elicitation: {}` means forms: it is older than the modes. */
function canElicit({ params }: Question, { elicitation }: ClientCapabilities): boolean {
  if (elicitation === undefined) return false;
  if (params["mode"] === "url") return elicitation["url"] !== undefined;
  return elicitation["form"] !== undefined || elicitation["url"] === undefined;
}

export function readElicitAnswer(value: unknown): ElicitAnswer | undefined {
  if (!isObject(value)) return undefined;
  const { action, content } = value;
  if (action === "decline" || action === "cancel") return { action };
  if (action !== "accept") return undefined;
  return isObject(content) ? { action, content } : { action };
}

export function readSampleAnswer(value: unknown): SampleAnswer | undefined {
  return isSampleAnswer(value) ? value : undefined;
}

function isSampleAnswer(value: unknown): value is SampleAnswer {
  return (
    isObject(value) &&
    typeof value["model"] === "string" &&
    typeof value["content"] === "object" &&
    value["content"] !== null
  );
}

export function readRoots(value: unknown): readonly Root[] | undefined {
  if (!isObject(value) || !Array.isArray(value["roots"])) return undefined;
  return value["roots"].filter((root): root is Root => isObject(root) && typeof root["uri"] === "string");
}

/** Asks the client a question and returns its answer, unchecked. */
export type Ask = (question: Question, key: string) => Promise<unknown>;

/** The three questions of a conversation, asked through `ask`. Questions without a key are numbered in their order. */
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
