import { messageOf } from "../../errors/owl-error.ts";
import {
  type Completer,
  type Definition,
  type HandlerDefinition,
  isDefinition,
  type PromptDefinition,
  type ResourceDefinition,
} from "../../capability/define.ts";
import { compileTool } from "../../capability/define-tool.ts";
import type { Tool } from "../../capability/registry.ts";
import { compileSchema, type CompiledSchema, isSchemaLibrary, type SchemaSource } from "../../capability/schema.ts";
import type { HandlerProblem } from "../handler-description.ts";
import type { DefinitionKind, FileReport, WireDefinition, WireSchema } from "./worker-protocol.ts";

interface LoadedHandler {
  readonly definition: HandlerDefinition;
  readonly tool: Tool;
}

interface LoadedPrompt {
  readonly definition: PromptDefinition;
  readonly arguments: CompiledSchema | undefined;
}

/** The exports of a file in this process, and its definitions by name. */
export class LoadedFile {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly handlers: Map<string, LoadedHandler> = new Map();
  readonly resources: Map<string, ResourceDefinition> = new Map();
  readonly prompts: Map<string, LoadedPrompt> = new Map();
  readonly #problems: HandlerProblem[] = [];

  constructor(file: string, module: unknown) {
    this.exports = isRecord(module) ? module : {};
    // A definition may be exported twice, by its name and as the default.
    const values = new Set(Object.values(this.exports).flat());
    for (const value of values) {
      if (!isDefinition(value)) continue;
      try {
        this.#add(value);
      } catch (error) {
        this.#problems.push({ file, message: messageOf(error) });
      }
    }
  }

  report(): FileReport {
    return {
      definitions: [
        ...[...this.handlers.values()].map(describeHandler),
        ...[...this.resources.values()].map(describeResource),
        ...[...this.prompts.values()].map(describePrompt),
      ],
      problems: this.#problems,
    };
  }

  completers(kind: DefinitionKind, name: string): Readonly<Record<string, Completer>> | undefined {
    return kind === "resource" ? this.resources.get(name)?.complete : this.prompts.get(name)?.definition.complete;
  }

  #add({ kind, definition }: Definition): void {
    switch (kind) {
      case "handler":
        assertNew(this.handlers, "tool", definition.name);
        this.handlers.set(definition.name, { definition, tool: compileTool(definition) });
        return;
      case "resource":
        assertNew(this.resources, "resource", definition.uri);
        this.resources.set(definition.uri, definition);
        return;
      case "prompt": {
        const schema = definition.arguments;
        const compiled = schema === undefined ? undefined : compileSchema(schema, "input");
        assertNew(this.prompts, "prompt", definition.name);
        this.prompts.set(definition.name, { definition, arguments: compiled });
      }
    }
  }
}

/** Rejects a duplicate name: calls could run one definition with the schema of the other. */
function assertNew(known: ReadonlyMap<string, unknown>, what: string, name: string): void {
  if (known.has(name)) throw new TypeError(`the file defines the ${what} "${name}" twice: rename one of them`);
}

/** Whether this process checks the value: only the schema library knows its own rules. */
export function isCheckedHere(source: SchemaSource | undefined): boolean {
  return source !== undefined && isSchemaLibrary(source);
}

function describeHandler({ definition, tool }: LoadedHandler): WireDefinition {
  const { name, input, output } = definition;
  return {
    kind: "handler",
    name,
    fields: plainFields(definition, ["name", "input", "output"]),
    input: wireSchema(input, tool.input),
    ...(tool.output !== undefined && { output: wireSchema(output, tool.output) }),
  };
}

function describeResource(definition: ResourceDefinition): WireDefinition {
  const { uri, complete } = definition;
  return {
    kind: "resource",
    name: uri,
    fields: plainFields(definition, ["uri", "complete"]),
    isWatchable: "watch" in definition,
    ...(complete !== undefined && { complete: Object.keys(complete) }),
  };
}

function describePrompt({ definition, arguments: compiled }: LoadedPrompt): WireDefinition {
  const { name, arguments: source, complete } = definition;
  return {
    kind: "prompt",
    name,
    fields: plainFields(definition, ["name", "arguments", "complete"]),
    ...(compiled !== undefined && { input: wireSchema(source, compiled) }),
    ...(complete !== undefined && { complete: Object.keys(complete) }),
  };
}

/** The members of a definition that can be sent as JSON. */
function plainFields(definition: object, without: readonly string[]): Readonly<Record<string, unknown>> {
  const entries: [string, unknown][] = Object.entries(definition);
  return Object.fromEntries(entries.filter(([name, value]) => !without.includes(name) && typeof value !== "function"));
}

function wireSchema(source: SchemaSource | undefined, { json }: CompiledSchema): WireSchema {
  return { json, isCheckedInWorker: isCheckedHere(source) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
