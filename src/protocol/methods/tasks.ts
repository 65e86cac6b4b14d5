import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { type TaskAction, TASKS_EXTENSION } from "../tasks.ts";
import { missingTasks } from "./run-as-task.ts";

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

/** Here, or on the server that runs the task. */
function act(
  mcp: Mcp,
  { action, taskId }: { readonly action: TaskAction; readonly taskId: string },
  { capabilities, caller, traceId, life, inputResponses = {} }: Exchange,
): Answer {
  if (capabilities.extensions?.[TASKS_EXTENSION] === undefined)
    throw missingTasks("tasks need a client that declares the tasks extension");
  const wanted = { action, taskId, inputResponses: { ...inputResponses }, principal: caller.principal.id };
  if (mcp.taskHomes?.isElsewhere(taskId) !== true) return mcp.tasks.act(wanted);
  return mcp.taskHomes.ask({ ...wanted, traceId, signal: life.signal });
}
