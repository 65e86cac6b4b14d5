import { compileTool, badArguments, describeIssues } from "../capability/define-tool.ts";
import type { CallContext } from "../capability/context.ts";
import type { Completer, HandlerDefinition, PromptDefinition, ResourceDefinition } from "../capability/define.ts";
import type { Prompt, Tool } from "../capability/registry.ts";
import { compileSchema, type SchemaIssue, type SchemaSource, shownSchema } from "../capability/schema.ts";
import { OwlError, messageOf } from "../errors/owl-error.ts";
import { withoutUndefined, isRecord } from "../platform/records.ts";
import type { HandlerDescription, HandlerProblem } from "./handler-description.ts";
import type { RemoteCallOptions, RemoteTarget } from "./workers/remote-call.ts";
import type { WireDefinition, WireSchema } from "./workers/worker-protocol.ts";
import type { DescribedFile } from "./describe-file.ts";

/** Runs the jobs of a file: a worker pool, or the server's own process. */
export interface Runner {
  run(options: Pick<RemoteCallOptions, "job" | "context" | "refused">): Promise<unknown>;
}

/** The runner of a file. It is replaced when the code changes; tools that exist already use the new one. */
interface FileRunner {
  readonly file: string;
  runner: Runner;
}

/** The tools, resources and prompts of a file. Unchanged ones keep their object, by which the registry compares. */
export class ServedFile {
  readonly file: string;
  readonly problems: readonly HandlerProblem[];
  readonly dependencies: ReadonlySet<string>;
  /** The code that it runs, by path; the files on disk may differ by now. */
  readonly sources: ReadonlyMap<string, string>;
  /** Shared by all versions of the file, so that tools made earlier use the current runner. */
  readonly #runner: FileRunner;
  readonly #made = {
    tools: new Map<string, Tool>(),
    resources: new Map<string, ServedResource>(),
    prompts: new Map<string, Prompt>(),
  };

  constructor(described: DescribedFile, runner: Runner, before?: ServedFile) {
    const { file, handlers, definitions, dependencies, sources } = described;
    const served = before === undefined ? { file, runner } : before.#runner;
    const old = before === undefined ? undefined : before.#made;
    const problems = [...described.problems];
    const add = <T>(made: Map<string, T>, { source, earlier, make }: Item<T>): void => {
      const key = JSON.stringify(source);
      try {
        made.set(key, earlier?.get(key) ?? make());
      } catch (error) {
        problems.push({ file, message: messageOf(error) });
      }
    };
    for (const source of handlers)
      add(this.#made.tools, { source, earlier: old?.tools, make: () => toolOfFunction(served, source) });
    for (const source of definitions) {
      if (source.kind === "handler")
        add(this.#made.tools, { source, earlier: old?.tools, make: () => toolOfDefinition(served, source) });
      else if (source.kind === "resource")
        add(this.#made.resources, { source, earlier: old?.resources, make: () => resourceOf(served, source) });
      else add(this.#made.prompts, { source, earlier: old?.prompts, make: () => promptOf(served, source) });
    }
    this.file = file;
    this.#runner = served;
    this.problems = problems;
    this.dependencies = new Set(dependencies);
    this.sources = sources;
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

  get runner(): Runner {
    return this.#runner.runner;
  }

  runBy(runner: Runner): void {
    this.#runner.runner = runner;
  }

  /** Whether the new version of the file has a problem that this one does not have. */
  isBetterThan({ isBroken, problems }: DescribedFile): boolean {
    const known = new Set(this.problems.map(({ message }) => message));
    return isBroken || problems.some(({ message }) => !known.has(message));
  }
}

interface Item<T> {
  readonly source: unknown;
  readonly earlier: ReadonlyMap<string, T> | undefined;
  readonly make: () => T;
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
    ...withoutUndefined({ title, version, output: outputSchema, effect, scope, timeoutMs, cost, confirm, skill }),
    run: (value, context) => {
      const output = callRemote({ served, remote, input: value, context });
      // JSON has no undefined: the schema of a type that includes it allows null.
      return toOutput(outputSchema === undefined ? output : output.then((made) => made ?? null));
    },
  };
  return { ...compileTool(definition), timeoutSetBy: timeoutSource(served), mayCharge: true };
}

function timeoutSource({ file }: FileRunner): string {
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
  /** Set when the resource reports changes. */
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

/** A schema of a library is shown to clients here and checked in the worker. */
function sourceOf({ json, isCheckedInWorker }: WireSchema): SchemaSource {
  return isCheckedInWorker ? shownSchema(json) : json;
}

function badOutput({ name }: Tool, issues: readonly SchemaIssue[]): OwlError {
  return new OwlError(
    "execution_error",
    `the tool "${name}" returned what its own output schema forbids: ${describeIssues(issues)}`,
  );
}

/** The pipeline checks the output, as it does for plain JavaScript. */
function toOutput<T>(output: Promise<unknown>): Promise<T> {
  // oxlint-disable-next-line typescript/consistent-type-assertions -- the pipeline checks the shape of every output
  return output as Promise<T>;
}

type HandlerFields = Omit<HandlerDefinition, "name" | "input" | "output" | "run">;
type ResourceFields = Omit<ResourceDefinition, "uri" | "complete" | "read" | "watch">;
type PromptFields = Omit<PromptDefinition, "name" | "arguments" | "complete" | "run">;

/** The worker has checked each definition with `compileTool`, or the compiler has. */
function isHandlerFields(fields: unknown): fields is HandlerFields {
  return isRecord(fields) && "description" in fields;
}

function isResourceFields(fields: unknown): fields is ResourceFields {
  return isRecord(fields) && typeof fields["name"] === "string";
}

function isPromptFields(fields: unknown): fields is PromptFields {
  return isRecord(fields);
}

function unusable(name: string): TypeError {
  return new TypeError(`the definition of "${name}" lacks required members`);
}
