import type { Changes } from "../capability/registry.ts";
import type { Pipeline } from "../call/pipeline.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { RequestWatch, RequestTracing } from "./request-observer.ts";
import { RequestStates, KeptStates, type UsedStates } from "./request-state.ts";
import { Tasks, type TasksElsewhere } from "./tasks.ts";

export interface McpOptions {
  readonly pipeline: Pipeline;
  readonly changes: Changes;
  readonly logger: Logger;
  readonly serverInfo: { readonly name: string; readonly title: string; readonly version: string };
  /** Whether errors include stacks: development mode only. */
  readonly withStack: boolean;
  /** Whether the skills extension is declared. Default: false. */
  readonly servesSkills?: boolean;
  /** The key for states that clients carry; servers of one cluster share it. Default: a random key. */
  readonly stateKey?: Buffer | undefined;
  /** Remembers which states were used, on this server or in its cluster. Default: on this server. */
  readonly usedStates?: UsedStates | undefined;
  /** Tasks of other servers. */
  readonly taskHomes?: TasksElsewhere | undefined;
  /** Observes every request. */
  readonly watch?: RequestWatch | undefined;
  readonly tracing?: RequestTracing | undefined;
}

/** What all connections of all eras share: the pipeline, and the tasks that outlive a request. */
export class Mcp {
  readonly pipeline: Pipeline;
  readonly changes: Changes;
  readonly logger: Logger;
  readonly serverInfo: McpOptions["serverInfo"];
  readonly withStack: boolean;
  readonly servesSkills: boolean;
  readonly watch: RequestWatch | undefined;
  readonly tracing: RequestTracing | undefined;
  readonly states: RequestStates;
  readonly usedStates: UsedStates;
  readonly tasks: Tasks;
  readonly taskHomes: TasksElsewhere | undefined;

  constructor(options: McpOptions) {
    const {
      pipeline,
      changes,
      logger,
      serverInfo,
      withStack,
      servesSkills = false,
      stateKey,
      usedStates = new KeptStates(),
      watch,
      tracing,
      taskHomes,
    } = options;
    this.taskHomes = taskHomes;
    this.tasks = new Tasks(taskHomes && (() => taskHomes.newId()));
    this.watch = watch;
    this.tracing = tracing;
    this.states = new RequestStates(stateKey === undefined ? {} : { key: stateKey });
    this.usedStates = usedStates;
    this.pipeline = pipeline;
    this.changes = changes;
    this.logger = logger;
    this.serverInfo = serverInfo;
    this.withStack = withStack;
    this.servesSkills = servesSkills;
  }

  close(): void {
    this.tasks.close();
  }
}
