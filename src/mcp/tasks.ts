import { randomBytes } from "node:crypto";
import type { Tool } from "../capability/registry.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Caller } from "../call/call.ts";
import { Lifeline } from "../call/lifeline.ts";
import type { Question } from "./conversations/questions.ts";
import type { WireErrorBody } from "./json-rpc.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

export type TaskAction = "get" | "update" | "cancel";

/** A request of a client about a task. */
export interface TaskRequest {
  readonly action: TaskAction;
  readonly taskId: string;
  readonly inputResponses: Record<string, unknown>;
  readonly principal: string;
  /** The claims that rules check besides the principal, as the client has them now. */
  readonly claims: Readonly<Record<string, unknown>>;
  readonly label?: string | undefined;
}

export interface TaskAct {
  readonly answer: Record<string, unknown>;
  /** What the client has changed, for the record; never the content of an answer. */
  readonly changed: { readonly task_id: string; readonly answered?: readonly string[] } | undefined;
}

/** Access to tasks of other servers. */
export interface TasksElsewhere {
  newId(): string;
  isElsewhere(taskId: string): boolean;
  ask(
    request: TaskRequest & { readonly traceId: string; readonly signal: AbortSignal },
  ): Promise<Record<string, unknown>>;
}

export interface TaskBegun {
  readonly tool: Tool;
  readonly args: unknown;
  readonly caller: Caller;
}

const POLL_INTERVAL_MS = 500;
const MAX_TASKS_PER_OWNER = 200;

interface OpenQuestion {
  readonly question: Question;
  readonly answer: (value: unknown) => void;
}

/** One long call whose answer the client fetches. It belongs to the principal that started it. */
export class Task {
  readonly id: string;
  readonly ownerId: string;
  readonly ttlMs: number;
  /** What was called, and by whom: rules that are made later apply to the task too. */
  readonly begun: TaskBegun;
  readonly createdAt: Date;
  readonly life: Lifeline = new Lifeline();
  #changedAt: Date;
  #status: TaskStatus = "working";
  #outcome: { readonly result: object } | { readonly error: WireErrorBody } | undefined;
  readonly #questions = new Map<string, OpenQuestion>();

  constructor({ id, ownerId, ttlMs, begun }: Pick<Task, "id" | "ownerId" | "ttlMs" | "begun">) {
    this.id = id;
    this.begun = begun;
    this.ownerId = ownerId;
    this.ttlMs = ttlMs;
    this.createdAt = new Date();
    this.#changedAt = this.createdAt;
  }

  get isOver(): boolean {
    return this.#status === "completed" || this.#status === "failed" || this.#status === "cancelled";
  }

  ask(question: Question, key: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#questions.set(key, { question, answer: resolve });
      this.#become("input_required");
      this.life.onEnd(() => reject(new OwlError("cancelled", "the task was cancelled")));
    });
  }

  /** Returns which questions were open and are answered. */
  answer(responses: Readonly<Record<string, unknown>>): readonly string[] {
    const answered: string[] = [];
    for (const [key, value] of Object.entries(responses)) {
      const open = this.#questions.get(key);
      if (open === undefined) continue;
      this.#questions.delete(key);
      open.answer(value);
      answered.push(key);
    }
    if (this.#status === "input_required" && this.#questions.size === 0) this.#become("working");
    return answered;
  }

  complete(result: object): void {
    this.#finish("completed", { result });
  }

  fail(error: WireErrorBody): void {
    this.#finish("failed", { error });
  }

  /** Returns false when the task was over. */
  cancel(): boolean {
    if (this.isOver) return false;
    this.#finish("cancelled", undefined);
    this.life.end();
    return true;
  }

  /** The task as clients see it, with details only in `tasks/get`. */
  toWire({ detailed }: { readonly detailed: boolean }): Record<string, unknown> {
    const inputRequests = Object.fromEntries([...this.#questions].map(([key, { question }]) => [key, question]));
    return {
      taskId: this.id,
      status: this.#status,
      createdAt: this.createdAt.toISOString(),
      lastUpdatedAt: this.#changedAt.toISOString(),
      ttlMs: this.ttlMs,
      pollIntervalMs: POLL_INTERVAL_MS,
      ...(detailed && this.#status === "input_required" && { inputRequests }),
      ...(detailed && this.#outcome),
    };
  }

  #finish(
    status: TaskStatus,
    outcome: { readonly result: object } | { readonly error: WireErrorBody } | undefined,
  ): void {
    if (this.isOver) return;
    this.#questions.clear();
    this.#outcome = outcome;
    this.#become(status);
  }

  #become(status: TaskStatus): void {
    this.#status = status;
    this.#changedAt = new Date();
  }
}

/** The tasks of all principals. A task of another principal and an unknown one get the same error. */
export class Tasks {
  readonly #tasks = new Map<string, { readonly task: Task; readonly expiry: NodeJS.Timeout }>();
  readonly #owned = new Map<string, number>();
  readonly #newId: () => string;

  /**
   * `newId` makes the ids of tasks: random by default, and with the server in them when several servers form a cluster.
   */
  constructor(newId: () => string = () => randomBytes(18).toString("base64url")) {
    this.#newId = newId;
  }

  create(begun: TaskBegun, ttlMs: number): Task {
    const ownerId = begun.caller.principal.id;
    const owned = this.#owned.get(ownerId) ?? 0;
    if (owned >= MAX_TASKS_PER_OWNER) {
      throw new OwlError("resource_limit", `${owned} tasks are kept for you already, which is the most`, {
        facts: { limit: MAX_TASKS_PER_OWNER, used: owned },
        hint: "wait until some of your tasks have ended their life",
      });
    }
    const task = new Task({ id: this.#newId(), ownerId, ttlMs, begun });
    const expiry = setTimeout(() => this.#forget(task), ttlMs);
    expiry.unref();
    this.#tasks.set(task.id, { task, expiry });
    this.#owned.set(ownerId, owned + 1);
    return task;
  }

  get(id: string, ownerId: string): Task {
    const task = this.#tasks.get(id)?.task;
    if (task === undefined || task.ownerId !== ownerId) {
      throw new OwlError("task_not_found", `there is no task "${id.slice(0, 64)}"`);
    }
    return task;
  }

  act({ action, taskId, inputResponses, principal }: TaskRequest): TaskAct {
    const task = this.get(taskId, principal);
    if (action === "get") return { answer: task.toWire({ detailed: true }), changed: undefined };
    if (action === "cancel") return { answer: {}, changed: task.cancel() ? { task_id: taskId } : undefined };
    const answered = task.answer(inputResponses);
    return { answer: {}, changed: answered.length === 0 ? undefined : { task_id: taskId, answered } };
  }

  close(): void {
    for (const { task } of this.#tasks.values()) this.#forget(task);
  }

  #forget(task: Task): void {
    const entry = this.#tasks.get(task.id);
    if (entry === undefined) return;
    clearTimeout(entry.expiry);
    task.cancel();
    this.#tasks.delete(task.id);
    const left = (this.#owned.get(task.ownerId) ?? 1) - 1;
    if (left > 0) this.#owned.set(task.ownerId, left);
    else this.#owned.delete(task.ownerId);
  }
}
