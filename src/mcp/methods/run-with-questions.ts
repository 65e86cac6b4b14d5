import { createHash } from "node:crypto";
import { APPROVAL_KEY_PREFIX } from "../../governance/approval/confirm.ts";
import type { Call, Conversation } from "../../call/call.ts";
import { CallSuspended } from "../../call/call.ts";
import { Replay } from "../conversations/replay.ts";
import type { Exchange } from "../exchange.ts";
import { isObject } from "../json-rpc.ts";
import type { Mcp } from "../mcp.ts";
import { STATE_LIFE_MS } from "../request-state.ts";
import { isModern } from "../versions.ts";

export interface Questionable<T> {
  /** What the client's answers are bound to: they are valid for nothing else. */
  readonly boundTo: readonly unknown[];
  readonly run: (call: Call) => Promise<T>;
  /** Functions that replace those of the era's conversation. */
  readonly also?: Partial<Conversation>;
}

export type InputRequired = Record<string, unknown>;

/**
 * Runs something that may ask the client. Older revisions ask while it runs. Since 2026-07-28 the questions are the
 * result, and the client repeats the request with its answers.
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
    const isPaid = exchange.requestState === undefined ? undefined : () => replay.isPaid();
    const result = await run({ ...call, isPaid, conversation: { ...conversation, ...replay.questions(), ...also } });
    return replay.isSuspended ? inputRequired(mcp, replay, binding ?? bindingOf(exchange, boundTo)) : result;
  } catch (error) {
    if (!(error instanceof CallSuspended)) throw error;
    return inputRequired(mcp, replay, binding ?? bindingOf(exchange, boundTo));
  }
}

/**
 * With a state, only answers to the questions that came with it count, and each state is valid for one call. A first
 * request may contain answers to the capability's own questions, as the protocol allows: it pays like any other call.
 */
function replayOf(mcp: Mcp, exchange: Exchange, binding: string | undefined): Replay {
  const { requestState, inputResponses = {}, capabilities } = exchange;
  const { answers, asked, isPaid } = earlierRounds(mcp, requestState, binding);
  const isExpected = (key: string): boolean => (requestState === undefined ? !isApproval(key) : asked.includes(key));
  const now = Object.entries(inputResponses).filter(([key]) => isExpected(key));
  return new Replay({
    answers: { ...answers, ...Object.fromEntries(now) },
    capabilities,
    isPaid,
    useState: async () =>
      requestState === undefined || mcp.usedStates.use(mcp.states.idOf(requestState), STATE_LIFE_MS),
  });
}

function isApproval(key: string): boolean {
  return key.startsWith(APPROVAL_KEY_PREFIX);
}

interface Rounds {
  readonly answers: Readonly<Record<string, unknown>>;
  /** Keys of the questions that came with the state. */
  readonly asked: readonly unknown[];
  /** Whether the fixed price of the call is paid. */
  readonly isPaid: boolean;
}

function earlierRounds(mcp: Mcp, requestState: string | undefined, binding: string | undefined): Rounds {
  const opened = requestState === undefined || binding === undefined ? {} : mcp.states.open(requestState, binding);
  const { answers, asked, isPaid } = isObject(opened) ? opened : {};
  return {
    answers: isObject(answers) ? answers : {},
    asked: Array.isArray(asked) ? asked : [],
    isPaid: isPaid === true,
  };
}

function inputRequired(mcp: Mcp, { pending, answers, hasPaid }: Replay, binding: string): InputRequired {
  // A question that is not an approval comes from the capability: so it ran, and has paid.
  const isPaid = hasPaid || [...pending.keys()].some((key) => !isApproval(key));
  return {
    resultType: "input_required",
    inputRequests: Object.fromEntries(pending),
    requestState: mcp.states.seal({ answers, asked: [...pending.keys()], isPaid }, binding),
  };
}

/** The same principal must send the same request: answers to one call are not valid for another. */
function bindingOf({ caller }: Exchange, boundTo: readonly unknown[]): string {
  return createHash("sha256")
    .update(JSON.stringify([caller.principal.id, ...boundTo]))
    .digest("base64url");
}
