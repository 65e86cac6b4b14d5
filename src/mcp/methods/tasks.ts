import { isOwlError } from "../../errors/owl-error.ts";
import type { Call } from "../../call/call.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { type Task, type TaskAction, type TaskRequest, TASKS_EXTENSION } from "../tasks.ts";
import { PLAIN_VERSION } from "../versions.ts";
import { missingTasks } from "./run-as-task.ts";

/** How many characters of an unknown id are recorded. */
const MAX_ID_CHARS = 64;

interface TaskParams {
  readonly taskId: string;
}

type Answer = Record<string, unknown> | Promise<Record<string, unknown>>;

export function getTask(mcp: Mcp, { taskId }: TaskParams, exchange: Exchange): Answer {
  return act(mcp, { action: "get", taskId }, exchange);
}

export function updateTask(mcp: Mcp, { taskId }: TaskParams, exchange: Exchange): Answer {
  return act(mcp, { action: "update", taskId }, exchange);
}

export function cancelTask(mcp: Mcp, { taskId }: TaskParams, exchange: Exchange): Answer {
  return act(mcp, { action: "cancel", taskId }, exchange);
}

/** Acts on this server, or on the server that runs the task. */
function act(
  mcp: Mcp,
  { action, taskId }: { readonly action: TaskAction; readonly taskId: string },
  { capabilities, caller, traceId, life, inputResponses = {} }: Exchange,
): Answer {
  if (capabilities.extensions?.[TASKS_EXTENSION] === undefined)
    throw missingTasks("tasks need a client that declares the tasks extension");
  const { principal, label } = caller;
  const asker = { principal: principal.id, claims: principal.claims, label };
  const wanted = { action, taskId, inputResponses: { ...inputResponses }, ...asker };
  if (mcp.taskHomes?.isElsewhere(taskId) !== true) return actHere(mcp, wanted, { caller, traceId });
  return mcp.taskHomes.ask({ ...wanted, traceId, signal: life.signal });
}

/** For a client of another server, which has checked that this is its client, with these claims. */
export function actForOther(mcp: Mcp, request: TaskRequest & { readonly traceId: string }): Answer {
  const principal = { id: request.principal, scopes: [], claims: request.claims };
  const caller = {
    principal,
    label: request.label,
    transport: "http",
    protocolVersion: PLAIN_VERSION,
    sessionId: undefined,
  } as const;
  return actHere(mcp, request, { caller, traceId: request.traceId });
}

async function actHere(
  mcp: Mcp,
  request: TaskRequest,
  asked: Pick<Call, "caller" | "traceId">,
): Promise<Record<string, unknown>> {
  const { begun } = await found(mcp, request, asked);
  // Judges the client as it is now, not as it was at the begin of the task. A client that may not continue a task may
  // still cancel it: that only stops work.
  if (request.action !== "cancel") {
    const name = `tasks/${request.action}`;
    await mcp.pipeline.judgeTask({ ...begun, caller: asked.caller }, asked, {
      name,
      task_id: request.taskId,
    });
  }
  const { answer, changed } = mcp.tasks.act(request);
  const name = `tasks/${request.action}`;
  if (changed !== undefined) await mcp.pipeline.recordTaskWord(name, asked, changed);
  else if (request.action === "get")
    await mcp.pipeline.recordLook({ kind: "task", name, args: { task_id: request.taskId }, result: {} }, asked);
  return answer;
}

/**
 * Throws for a task that does not exist or belongs to another principal. The attempt is recorded, without which of the
 * two it was.
 */
async function found(mcp: Mcp, request: TaskRequest, asked: Pick<Call, "caller" | "traceId">): Promise<Task> {
  try {
    return mcp.tasks.get(request.taskId, request.principal);
  } catch (error) {
    const task = { name: `tasks/${request.action}`, task_id: request.taskId.slice(0, MAX_ID_CHARS) };
    if (isOwlError(error)) await mcp.pipeline.recordNoTask(asked, { ...task, error });
    throw error;
  }
}
