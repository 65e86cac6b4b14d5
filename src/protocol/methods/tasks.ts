import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { TASKS_EXTENSION } from "../tasks.ts";
import { missingTasks } from "./run-as-task.ts";

interface TaskParams {
  readonly taskId: string;
}

export function getTask(mcp: Mcp, { taskId }: TaskParams, exchange: Exchange): Record<string, unknown> {
  assertTasks(exchange);
  return mcp.tasks.get(taskId, exchange.caller.principal.id).toWire({ detailed: true });
}

export function updateTask(mcp: Mcp, { taskId }: TaskParams, exchange: Exchange): Record<string, unknown> {
  assertTasks(exchange);
  mcp.tasks.get(taskId, exchange.caller.principal.id).answer(exchange.inputResponses ?? {});
  return {};
}

export function cancelTask(mcp: Mcp, { taskId }: TaskParams, exchange: Exchange): Record<string, unknown> {
  assertTasks(exchange);
  mcp.tasks.get(taskId, exchange.caller.principal.id).cancel();
  return {};
}

function assertTasks({ capabilities }: Exchange): void {
  if (capabilities.extensions?.[TASKS_EXTENSION] === undefined)
    throw missingTasks("tasks need a client that declares the tasks extension");
}
