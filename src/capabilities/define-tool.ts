import type { HandlerDefinition, TaskOptions } from "./define.ts";
import type { Tool } from "./registry.ts";
import { compileSchema, type JsonSchema } from "./schema.ts";

/** Clients add a prefix to names and some cap the whole at 64 characters. */
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const EMPTY_OBJECT: JsonSchema = { type: "object", properties: {}, additionalProperties: false };
const ONE_HOUR_MS = 3_600_000;

/** Makes a tool ready to run of what its author wrote. Throws a `TypeError` that says what to change. */
export function compileTool(definition: HandlerDefinition): Tool {
  const { name, description, effect = {} } = definition;
  if (!NAME.test(name)) throw new TypeError(`the tool name "${name}" must be 1 to 64 letters, digits, "_", "-" or "."`);
  if (typeof description !== "string" || description.trim() === "") {
    throw new TypeError(`the tool "${name}" needs a description: it is all that a model knows about it`);
  }
  if (typeof definition.run !== "function") throw new TypeError(`the tool "${name}" needs a run function`);
  const input = compileSchema(definition.input ?? EMPTY_OBJECT, "input");
  if (input.json["type"] !== "object") throw new TypeError(`the input schema of "${name}" must describe an object`);
  return {
    name,
    description,
    version: definition.version ?? "1.0.0",
    title: definition.title,
    effect: {
      readOnly: effect.readOnly ?? false,
      destructive: effect.destructive ?? effect.readOnly !== true,
      idempotent: effect.idempotent ?? effect.readOnly === true,
      openWorld: effect.openWorld ?? true,
    },
    // A handler is code of the operator that runs beside the server: without a word about its reach, that is what it is.
    scope: definition.scope ?? "exec",
    icons: definition.icons,
    meta: definition._meta,
    timeoutMs: definition.timeoutMs,
    task: definition.task === undefined ? undefined : taskOptions(definition.task),
    input,
    output: definition.output === undefined ? undefined : compileSchema(definition.output, "output"),
    // The schema has checked the input, which is what the definition's type says of it.
    run: (value, context) => definition.run(value as Record<string, unknown>, context),
  };
}

function taskOptions({ support, start = "at-once", ttlMs = ONE_HOUR_MS }: TaskOptions): Required<TaskOptions> {
  return { support, start, ttlMs };
}
