import { compileTool, badArguments, describeIssues } from "../capability/define-tool.ts";
import type { CallContext } from "../capability/context.ts";
import type { Completer, HandlerDefinition, PromptDefinition, ResourceDefinition } from "../capability/define.ts";
import type { Prompt, Tool } from "../capability/registry.ts";
import { compileSchema, type SchemaIssue, type SchemaSource, shownSchema } from "../capability/schema.ts";
import { OwlError, messageOf } from "../errors/owl-error.ts";
import type { HandlerDescription, HandlerProblem } from "./handler-description.ts";
import type { RemoteCallOptions, RemoteTarget } from "./workers/remote-call.ts";
import type { WireDefinition, WireSchema } from "./workers/worker-protocol.ts";
import type { DescribedFile } from "./describe-file.ts";

/** Whoever runs the jobs of a file: workers, or this very process. */
export interface Runner {
  run(options: Pick<RemoteCallOptions, "job" | "context" | "refused">): Promise<unknown>;
}

/** A file whose handlers are served. Who runs it may change under the tools that were made of it. */
interface FileRunner {
  readonly file: string;
  runner: Runner;
}

function toolOfFunction(served: FileRunner, description: HandlerDescription): Tool {
  const { name, title, version, effect, scope, timeoutMs, cost, confirm, skill, outputSchema, examples } = description;
  const { exportName, call, dates, isGenerator } = description;
  const remote: RemoteTarget = {
    target: { kind: "function", file: served.file, exportName, call, dates, isGenerator },
    what: `the tool "${name}"`,
    isExclusive: served.file.endsWith(".py") && call.isAsync !== true,
  };
  const input = examples === undefined ? description.inputSchema : { ...description.inputSchema, examples };
  const definition: HandlerDefinition = {
    name,
    description: description.description,
    input,
    ...(title !== undefined && { title }),
    ...(version !== undefined && { version }),
    ...(outputSchema !== undefined && { output: outputSchema }),
    ...(effect !== undefined && { effect }),
    ...(scope !== undefined && { scope }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(cost !== undefined && { cost }),
    ...(confirm !== undefined && { confirm }),
    ...(skill !== undefined && { skill }),
    run: (value, context) => {
      const output = callRemote({ served, remote, input: value, context });
      // JSON has no undefined: a type that allows it is described as one that may be null.
      return toOutput(outputSchema === undefined ? output : output.then((made) => made ?? null));
    },
  };
  return { ...compileTool(definition), timeoutSetBy: timeoutPlace(served), mayCharge: true };
}

function timeoutPlace({ file }: FileRunner): string {
  return file.endsWith(".py") ? "timeout of its @handler" : "@timeout in its doc comment";
}

function toolOfDefinition(served: FileRunner, { name, fields, input, output }: WireDefinition): Tool {
  const remote = definitionTarget(served, { kind: "handler", name, what: `the tool "${name}"` });
  const refused = (side: "input" | "output", issues: readonly SchemaIssue[]): Error =>
    side === "input" ? badArguments(tool, issues) : badOutput(tool, issues);
  if (!isHandlerFields(fields)) throw unusable(name);
  const definition: HandlerDefinition = {
    ...fields,
    name,
    ...(input !== undefined && { input: sourceOf(input) }),
    ...(output !== undefined && { output: sourceOf(output) }),
    run: (value, context) => toOutput(callRemote({ served, remote, input: value, context, refused })),
  };
  const tool: Tool = { ...compileTool(definition), mayCharge: true };
  return tool;
}

interface ServedResource {
  readonly definition: ResourceDefinition;
  /** Set when the resource can say that it changed. */
  readonly watch: RemoteTarget | undefined;
}

function resourceOf(served: FileRunner, wire: WireDefinition): ServedResource {
  const { fields } = wire;
  if (!isResourceFields(fields)) throw unusable(wire.name);
  const remote = definitionTarget(served, { kind: "resource", name: wire.name, what: `the resource "${fields.name}"` });
  const complete = completersOf(served, remote, wire.complete);
  const definition: ResourceDefinition = {
    ...fields,
    uri: wire.name,
    mayCharge: true,
    ...(complete !== undefined && { complete }),
    read: (uri, variables, context) =>
      toOutput(callRemote({ served, remote, op: "read", input: { uri, variables }, context })),
  };
  return { definition, watch: wire.isWatchable === true ? remote : undefined };
}

function promptOf(served: FileRunner, wire: WireDefinition): Prompt {
  const { name, input, fields } = wire;
  if (!isPromptFields(fields)) throw unusable(name);
  const remote = definitionTarget(served, { kind: "prompt", name, what: `the prompt "${name}"` });
  const complete = completersOf(served, remote, wire.complete);
  const refused = (_side: "input" | "output", issues: readonly SchemaIssue[]): Error =>
    new OwlError("invalid_params", `invalid arguments for the prompt "${name}": ${describeIssues(issues)}`, {
      facts: { issues },
    });
  const definition: PromptDefinition = {
    ...fields,
    name,
    ...(complete !== undefined && { complete }),
    run: (value, context) => toOutput(callRemote({ served, remote, input: value, context, refused })),
  };
  return { definition, arguments: input === undefined ? undefined : compileSchema(sourceOf(input), "input") };
}

interface RemoteUse {
  readonly served: FileRunner;
  readonly remote: RemoteTarget;
  readonly op?: "run" | "read" | "complete";
  readonly input: unknown;
  readonly context?: CallContext;
  readonly refused?: (side: "input" | "output", issues: readonly SchemaIssue[]) => Error;
}

function callRemote({ served, remote, op = "run", input, context, refused }: RemoteUse): Promise<unknown> {
  return served.runner.run({ job: { op, remote, input }, context, refused });
}

function definitionTarget(
  { file }: FileRunner,
  { kind, name, what }: { readonly kind: WireDefinition["kind"]; readonly name: string; readonly what: string },
): RemoteTarget {
  return { target: { kind: "definition", file, of: kind, name }, what, isExclusive: false };
}

function completersOf(
  served: FileRunner,
  remote: RemoteTarget,
  names: readonly string[] | undefined,
): Readonly<Record<string, Completer>> | undefined {
  if (names === undefined) return undefined;
  const completer =
    (argument: string): Completer =>
    (value, others, context) =>
      toOutput(callRemote({ served, remote, op: "complete", input: { argument, value, others }, context }));
  return Object.fromEntries(names.map((name) => [name, completer(name)]));
}

/** A schema of a library is shown here and checked where the library is. */
function sourceOf({ json, isCheckedInWorker }: WireSchema): SchemaSource {
  return isCheckedInWorker ? shownSchema(json) : json;
}

function badOutput({ name }: Tool, issues: readonly SchemaIssue[]): OwlError {
  return new OwlError(
    "execution_error",
    `the tool "${name}" returned what its own output schema forbids: ${describeIssues(issues)}`,
  );
}

/** What comes back is judged by the pipeline, as whatever plain JavaScript returns. */
function toOutput<T>(output: Promise<unknown>): Promise<T> {
  // oxlint-disable-next-line typescript/consistent-type-assertions -- the pipeline checks the shape of every output
  return output as Promise<T>;
}

type HandlerFields = Omit<HandlerDefinition, "name" | "input" | "output" | "run">;
type ResourceFields = Omit<ResourceDefinition, "uri" | "complete" | "read" | "watch">;
type PromptFields = Omit<PromptDefinition, "name" | "arguments" | "complete" | "run">;

/** Each was a definition that `compileTool`, or a compiler, has judged in the worker. */
function isHandlerFields(fields: unknown): fields is HandlerFields {
  return typeof fields === "object" && fields !== null && "description" in fields;
}

function isResourceFields(fields: unknown): fields is ResourceFields {
  return typeof fields === "object" && fields !== null && "name" in fields && typeof fields.name === "string";
}

function isPromptFields(fields: unknown): fields is PromptFields {
  return typeof fields === "object" && fields !== null;
}

function unusable(name: string): TypeError {
  return new TypeError(`the definition of "${name}" lacks what it must have`);
}

/** What a file brings, and what it was made of. What did not change keeps its object, for others remember by it. */
export class ServedFile implements FileRunner {
  readonly file: string;
  runner: Runner;
  readonly problems: readonly HandlerProblem[];
  readonly dependencies: ReadonlySet<string>;
  /** The code that it runs, by path: what is on the disk may be something else by now. */
  readonly sources: ReadonlyMap<string, string>;
  readonly #made = {
    tools: new Map<string, Tool>(),
    resources: new Map<string, ServedResource>(),
    prompts: new Map<string, Prompt>(),
  };

  constructor(described: DescribedFile, runner: Runner, before?: ServedFile) {
    this.file = described.file;
    this.runner = runner;
    this.dependencies = new Set(described.dependencies);
    this.sources = described.sources;
    // Tools made earlier ask the shelf of their time who runs them.
    this.current = before?.current ?? this;
    const { current } = this;
    const old = before === undefined ? undefined : before.#made;
    const problems = [...described.problems];
    const keep = <T>({ made, earlier }: Kept<T>, source: unknown, make: () => T): void => {
      const key = JSON.stringify(source);
      try {
        made.set(key, earlier?.get(key) ?? make());
      } catch (error) {
        problems.push({ file: this.file, message: messageOf(error) });
      }
    };
    const tools = { made: this.#made.tools, earlier: old?.tools };
    const resources = { made: this.#made.resources, earlier: old?.resources };
    const prompts = { made: this.#made.prompts, earlier: old?.prompts };
    for (const handler of described.handlers) keep(tools, handler, () => toolOfFunction(current, handler));
    for (const definition of described.definitions) {
      if (definition.kind === "handler") keep(tools, definition, () => toolOfDefinition(current, definition));
      else if (definition.kind === "resource") keep(resources, definition, () => resourceOf(current, definition));
      else keep(prompts, definition, () => promptOf(current, definition));
    }
    this.problems = problems;
  }

  get tools(): readonly Tool[] {
    return [...this.#made.tools.values()];
  }

  get resources(): readonly ServedResource[] {
    return [...this.#made.resources.values()];
  }

  get prompts(): readonly Prompt[] {
    return [...this.#made.prompts.values()];
  }

  /** The one object that all tools of this file, old and new, look at. */
  readonly current: FileRunner;

  /** What the file is now has a problem that this does not have. */
  isBetterThan({ isBroken, problems }: DescribedFile): boolean {
    const known = new Set(this.problems.map(({ message }) => message));
    return isBroken || problems.some(({ message }) => !known.has(message));
  }

  runBy(runner: Runner): void {
    this.runner = runner;
    this.current.runner = runner;
  }
}

interface Kept<T> {
  readonly made: Map<string, T>;
  readonly earlier: ReadonlyMap<string, T> | undefined;
}
