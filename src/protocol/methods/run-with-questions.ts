import { createHash } from "node:crypto";
import type { Call, Conversation } from "../../pipeline/call.ts";
import { CallSuspended } from "../../pipeline/call.ts";
import { isApproval, Replay } from "../conversations/replay.ts";
import type { Exchange } from "../exchange.ts";
import { isObject } from "../json-rpc.ts";
import type { Mcp } from "../mcp.ts";
import { STATE_LIFE_MS } from "../request-state.ts";
import { isModern } from "../versions.ts";

export interface Questionable<T> {
  /** What the client's answers belong to: they open for nothing else. */
  readonly boundTo: readonly unknown[];
  readonly run: (call: Call) => Promise<T>;
  /** Goes into the conversation, over what the era gives. */
  readonly also?: Partial<Conversation>;
}

export type InputRequired = Record<string, unknown>;

/**
 * Runs something that may ask the client. Older revisions ask while it runs; since 2026-07-28 the questions are the
 * result, and the client sends the request again with its answers.
 */
export async function runWithQuestions<T extends Record<string, unknown>>(
  mcp: Mcp,
  exchange: Exchange,
  { boundTo, run, also }: Questionable<T>,
): Promise<T | InputRequired> {
  const { caller, traceId, requestId, life, conversation } = exchange;
  const call: Call = { caller, traceId, requestId, life, conversation };
  if (!isModern(caller.protocolVersion))
    return run(also === undefined ? call : { ...call, conversation: { ...conversation, ...also } });
  const binding = exchange.requestState === undefined ? undefined : bindingOf(exchange, boundTo);
  const replay = replayOf(mcp, exchange, binding);
  try {
    const result = await run({ ...call, conversation: { ...conversation, ...replay.questions(), ...also } });
    return replay.isSuspended ? inputRequired(mcp, replay, binding ?? bindingOf(exchange, boundTo)) : result;
  } catch (error) {
    if (!(error instanceof CallSuspended)) throw error;
    return inputRequired(mcp, replay, binding ?? bindingOf(exchange, boundTo));
  }
}

/** What an approval answers must have been asked: nobody says yes to a question that was never put. */
function replayOf(mcp: Mcp, exchange: Exchange, binding: string | undefined): Replay {
  const { requestState, inputResponses = {}, capabilities } = exchange;
  const { answers, asked } = earlierRounds(mcp, requestState, binding);
  const now = Object.entries(inputResponses).filter(([key]) => !isApproval(key) || asked.includes(key));
  return new Replay({
    answers: { ...answers, ...Object.fromEntries(now) },
    capabilities,
    useState: () => requestState !== undefined && mcp.usedStates.use(mcp.states.idOf(requestState), STATE_LIFE_MS),
  });
}

interface Rounds {
  readonly answers: Readonly<Record<string, unknown>>;
  /** Keys of the questions that came with the state. */
  readonly asked: readonly unknown[];
}

function earlierRounds(mcp: Mcp, requestState: string | undefined, binding: string | undefined): Rounds {
  const opened = requestState === undefined || binding === undefined ? {} : mcp.states.open(requestState, binding);
  const { answers, asked } = isObject(opened) ? opened : {};
  return { answers: isObject(answers) ? answers : {}, asked: Array.isArray(asked) ? asked : [] };
}

function inputRequired(mcp: Mcp, { pending, answers }: Replay, binding: string): InputRequired {
  return {
    resultType: "input_required",
    inputRequests: Object.fromEntries(pending),
    requestState: mcp.states.seal({ answers, asked: [...pending.keys()] }, binding),
  };
}

/** The same principal must send the same request: answers given for one call are not good for another. */
function bindingOf({ caller }: Exchange, boundTo: readonly unknown[]): string {
  return createHash("sha256")
    .update(JSON.stringify([caller.principal.id, ...boundTo]))
    .digest("base64url");
}
