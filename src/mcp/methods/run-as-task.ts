import type { TaskOptions } from "../../capability/define.ts";
import type { Tool } from "../../capability/registry.ts";
import { isOwlError, OwlError, toOwlError } from "../../errors/owl-error.ts";
import { type Call, CallSuspended, type Conversation } from "../../call/call.ts";
import { Lifeline } from "../../call/lifeline.ts";
import { assertCanAnswer, asking } from "../conversations/questions.ts";
import { silentConversation } from "../conversations/silent.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { type Task, TASKS_EXTENSION } from "../tasks.ts";
import { isModern } from "../versions.ts";
import { toWireError } from "../wire-error.ts";
import { runWithQuestions } from "./run-with-questions.ts";
import { failureOf, forEra } from "./tool-outcome.ts";

interface TaskCall {
  readonly tool: Tool;
  readonly task: Required<TaskOptions>;
  readonly args: unknown;
}

/** Whether the call may become a task. Throws when it must become one and the client does not support tasks. */
export function canUseTasks(tool: Tool, { caller, capabilities }: Exchange): boolean {
  if (isModern(caller.protocolVersion) && capabilities.extensions?.[TASKS_EXTENSION] !== undefined) return true;
  if (tool.task?.support !== "required") return false;
  throw missingTasks(
    `the tool "${tool.name}" answers only with a task, and the client does not declare the tasks extension`,
  );
}

export function missingTasks(message: string): OwlError {
  return new OwlError("missing_capability", message, {
    facts: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
  });
}

/** Answers with a task, at once or when the handler starts it, and runs the tool in the background. */
export function runAsTask(
  mcp: Mcp,
  { tool, task: options, args }: TaskCall,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const start = options.start === "at-once" ? startedAtOnce : startedByHandler;
  return start(mcp, { tool, task: options, args }, exchange);
}

/**
 * The client gets the task when the first record of it is written: that it began, or how it ended. A refusal has a
 * separate record, so that tasks that never run cannot fill the ledger.
 */
async function startedAtOnce(
  mcp: Mcp,
  { tool, task: options, args }: TaskCall,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const { caller, traceId, requestId } = exchange;
  const task = mcp.tasks.create({ tool, args, caller }, options.ttlMs);
  const answer = created(task);
  const conversation = taskConversation(mcp, task, exchange);
  await new Promise<void>((resolve, reject) => {
    let recorded: Promise<void> | undefined;
    const onPassed = (): void => {
      if (recorded !== undefined) return;
      recorded = recordStart(mcp, { task, tool, args }, exchange);
      recorded.then(resolve, reject);
    };
    const call = { caller, traceId, requestId, life: task.life, conversation, onPassed };
    const running = mcp.pipeline.callTool(tool, args, call);
    // When the ledger is known to fail, the call is refused without a record, and the client gets no task.
    running.catch((error: unknown) => {
      if (recorded === undefined && isOwlError(error) && error.kind === "store_unavailable") reject(error);
    });
    void settle(mcp, task, { tool, exchange, running }).then(resolve);
  });
  return answer;
}

/** A task that cannot be recorded must not continue. */
async function recordStart(
  mcp: Mcp,
  { task, tool, args }: { readonly task: Task; readonly tool: Tool; readonly args: unknown },
  exchange: Exchange,
): Promise<void> {
  try {
    await mcp.pipeline.recordTaskWord("tasks/create", exchange, { task_id: task.id, tool: tool.name, arguments: args });
  } catch (error) {
    task.cancel();
    throw error;
  }
}

/** Questions before `startTask()` are asked in the call itself, later ones in the task. */
function startedByHandler(
  mcp: Mcp,
  { tool, task: options, args }: TaskCall,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    let task: Task | undefined;
    const life = new Lifeline();
    const unlink = exchange.life.onEnd(() => (task === undefined ? life.end() : undefined));
    const begin = async (): Promise<void> => {
      const begun = mcp.tasks.create({ tool, args, caller: exchange.caller }, options.ttlMs);
      task = begun;
      begun.life.onEnd(() => life.end());
      const answer = created(begun);
      try {
        await recordStart(mcp, { task: begun, tool, args }, exchange);
        resolve(answer);
      } catch (error) {
        reject(error);
        throw error;
      }
    };
    let starting: Promise<void> | undefined;
    const startTask = (): Promise<void> => (starting ??= begin());
    const run = (call: Call): Promise<Record<string, unknown>> => {
      const before = call.conversation;
      const now = (): Conversation => (task === undefined ? before : taskConversation(mcp, task, exchange));
      const conversation: Conversation = {
        ...before,
        elicit: (request, ask) => now().elicit(request, ask),
        sample: (request, ask) => now().sample(request, ask),
        roots: (ask) => now().roots(ask),
        startTask,
      };
      const running = mcp.pipeline.callTool(tool, args, { ...call, life, conversation });
      return running.then((result) => forEra(tool, result, exchange.caller.protocolVersion));
    };
    const running = runWithQuestions(mcp, exchange, { boundTo: ["tools/call", tool.name, args], run });
    running
      .catch((thrown: unknown) => failureOf(mcp, tool, thrown, exchange))
      .then(
        (result) => (task === undefined ? resolve(result) : task.complete(result)),
        (thrown: unknown) => (task === undefined ? reject(thrown) : fail(mcp, task, thrown, exchange)),
      )
      .finally(unlink);
  });
}

function created(task: Task): Record<string, unknown> {
  return { resultType: "task", ...task.toWire({ detailed: false }) };
}

async function settle(
  mcp: Mcp,
  task: Task,
  {
    tool,
    exchange,
    running,
  }: { readonly tool: Tool; readonly exchange: Exchange; readonly running: ReturnType<Mcp["pipeline"]["callTool"]> },
): Promise<void> {
  try {
    task.complete(forEra(tool, await running, exchange.caller.protocolVersion));
  } catch (thrown) {
    try {
      task.complete(failureOf(mcp, tool, thrown, exchange));
    } catch (error) {
      fail(mcp, task, error, exchange);
    }
  }
}

function fail(mcp: Mcp, task: Task, thrown: unknown, { caller, traceId }: Exchange): void {
  const error = thrown instanceof CallSuspended ? new OwlError("internal", thrown.message) : toOwlError(thrown);
  task.fail(toWireError(error, { version: caller.protocolVersion, traceId, withStack: mcp.withStack }));
}

/** A task has no open request to ask through: its questions are in `tasks/get` until `tasks/update` answers them. */
function taskConversation(mcp: Mcp, task: Task, { capabilities }: Exchange): Conversation {
  return {
    ...silentConversation(mcp.changes),
    ...asking((question, key) => {
      assertCanAnswer(question, capabilities);
      return task.ask(question, key);
    }),
  };
}
