import type { Effect, HandlerDefinition, Price, TaskOptions } from "./define.ts";
import type { Operation, Tool } from "./registry.ts";
import { compileSchema, type CompiledSchema, type JsonSchema, type SchemaIssue } from "./schema.ts";
import { OwlError } from "../errors/owl-error.ts";

/** Clients add a prefix to names and some cap the whole at 64 characters. */
export const TOOL_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const EMPTY_OBJECT: JsonSchema = { type: "object", properties: {}, additionalProperties: false };
const ONE_HOUR_MS = 3_600_000;

/** Checks a definition and compiles its schemas. Throws a `TypeError` that says what to change. */
export function compileTool(definition: HandlerDefinition, operation?: Operation): Tool {
  assertUsable(definition);
  const { name, description, version = "1.0.0", title, scope = "exec", icons, timeoutMs } = definition;
  return {
    name,
    description,
    version,
    title,
    effect: fullEffect(definition.effect),
    // A handler runs beside the server: "exec" is the default, since it can reach everything that the server can.
    scope,
    icons,
    meta: definition._meta,
    timeoutMs,
    price: fullPrice(definition.cost),
    ...(operation !== undefined && { operation }),
    confirm: definition.confirm,
    skill: definition.skill === undefined ? undefined : `skill://${definition.skill}`,
    task: definition.task === undefined ? undefined : taskOptions(definition.task),
    input: inputSchema(definition),
    output: definition.output === undefined ? undefined : compileSchema(definition.output, "output"),
    run: (value, context) => definition.run(value, context),
  };
}

/** Definitions may come from JavaScript, without type checks. */
function assertUsable({ name, description, run }: Partial<HandlerDefinition>): void {
  if (typeof name !== "string" || !TOOL_NAME.test(name)) {
    throw new TypeError(`the tool name ${JSON.stringify(name)} must be 1 to 64 letters, digits, "_", "-" or "."`);
  }
  if (typeof description !== "string" || description.trim() === "") {
    throw new TypeError(`the tool "${name}" needs a description: it is all that a model knows about it`);
  }
  if (typeof run !== "function") throw new TypeError(`the tool "${name}" needs a run function`);
}

function inputSchema({ name, input = EMPTY_OBJECT }: HandlerDefinition): CompiledSchema {
  const schema = compileSchema(input, "input");
  if (schema.json["type"] !== "object") throw new TypeError(`the input schema of "${name}" must describe an object`);
  return schema;
}

function fullEffect({
  readOnly = false,
  destructive = !readOnly,
  idempotent = readOnly,
  openWorld = true,
}: Partial<Effect> = {}): Effect {
  return { readOnly, destructive, idempotent, openWorld };
}

function fullPrice(cost: HandlerDefinition["cost"] = {}): Price {
  const { fixed = 0, perSecond = 0, perEgressMb = 0, max } = typeof cost === "number" ? { fixed: cost } : cost;
  for (const part of [fixed, perSecond, perEgressMb, max ?? 0]) {
    if (!Number.isFinite(part) || part < 0) throw new TypeError(`a cost must be a number of 0 or more, not ${part}`);
  }
  return { fixed, perSecond, perEgressMb, max };
}

function taskOptions({ support, start = "at-once", ttlMs = ONE_HOUR_MS }: TaskOptions): Required<TaskOptions> {
  return { support, start, ttlMs };
}

export function describeIssues(issues: readonly SchemaIssue[]): string {
  return issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
}

export function badArguments({ name, input }: Pick<Tool, "name" | "input">, issues: readonly SchemaIssue[]): OwlError {
  const known = Object.keys(input.json["properties"] ?? {});
  const hint =
    known.length === 0
      ? "this tool takes no arguments: remove them and call it again"
      : `the arguments are ${known.join(", ")}; correct the ones named above and call it again`;
  return new OwlError("invalid_arguments", `invalid arguments for "${name}": ${describeIssues(issues)}`, {
    facts: { issues },
    hint,
  });
}
