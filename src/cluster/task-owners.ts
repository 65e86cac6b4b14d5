import { OwlError } from "../errors/owl-error.ts";
import { type ForwardOutcome, type TaskMessage, valueOf } from "./forward-message.ts";
import type { Forwarder } from "./forwarder.ts";
import { type ServerRegistry, serverOf, newOwnedId } from "./server-registry.ts";

export interface TaskOwnersOptions {
  readonly serverId: string;
  readonly forwarder: Forwarder;
  readonly registry: ServerRegistry;
}

type TaskAnswer = Readonly<Record<string, unknown>>;
type Serve = (message: TaskMessage) => TaskAnswer | Promise<TaskAnswer>;

export interface TaskQuestion extends Omit<TaskMessage, "kind"> {
  readonly signal: AbortSignal;
}

/** Tasks are on the server that runs them, and their ids name it. */
export class TaskOwners {
  readonly #options: TaskOwnersOptions;
  #serve: Serve | undefined;

  constructor(options: TaskOwnersOptions) {
    this.#options = options;
  }

  newId(): string {
    return newOwnedId(this.#options.serverId);
  }

  isElsewhere(taskId: string): boolean {
    const owner = serverOf(taskId);
    return owner !== undefined && owner !== this.#options.serverId;
  }

  /** What the server with the task says. @throws OwlError */
  async ask({ signal, ...question }: TaskQuestion): Promise<Readonly<Record<string, unknown>>> {
    const { registry, forwarder } = this.#options;
    const id = serverOf(question.taskId) ?? "";
    const url = await registry.find(id);
    if (url === undefined) throw missing(question.taskId);
    let outcome: ForwardOutcome | number;
    try {
      outcome = await forwarder.ask({ id, url }, { kind: "task", ...question }, { signal, hear: () => undefined });
    } catch (error) {
      throw unreachable(error);
    }
    if (typeof outcome === "number") throw unreachable(new Error(`status ${outcome}`));
    const value = valueOf(outcome);
    if (typeof value !== "object" || value === null) throw unreachable(new Error("no answer"));
    return { ...value };
  }

  /** Says who answers for tasks of this server. */
  serveWith(serve: Serve): void {
    this.#serve = serve;
  }

  /** A question that another server sends here. */
  run(message: TaskMessage): TaskAnswer | Promise<TaskAnswer> {
    if (this.#serve === undefined) throw missing(message.taskId);
    return this.#serve(message);
  }
}

function missing(taskId: string): OwlError {
  return new OwlError("task_not_found", `there is no task "${taskId.slice(0, 64)}"`);
}

function unreachable(cause: unknown): OwlError {
  return new OwlError("overloaded", "the server that runs this task does not answer", { cause });
}
