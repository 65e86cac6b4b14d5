import type { CallContext } from "./context.ts";
import type { PromptDefinition, ResourceDefinition } from "./define.ts";
import { UriPattern } from "./uri-pattern.ts";
import type { CompiledSchema } from "./schema.ts";
import type { Effect, HandlerOutput, Icon, PermissionScope, TaskOptions } from "./define.ts";

/** A tool as the pipeline runs it and as clients see it. Built-in tools and users' handlers are the same thing here. */
export interface Tool {
  readonly name: string;
  readonly version: string;
  readonly title: string | undefined;
  readonly description: string;
  readonly effect: Effect;
  readonly scope: PermissionScope;
  readonly icons: readonly Icon[] | undefined;
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly timeoutMs: number | undefined;
  readonly task: Required<TaskOptions> | undefined;
  readonly input: CompiledSchema;
  readonly output: CompiledSchema | undefined;
  run(input: unknown, context: CallContext): HandlerOutput | Promise<HandlerOutput>;
}

export interface Resource {
  readonly definition: ResourceDefinition;
  /** Set when the URI is a template. */
  readonly pattern: UriPattern | undefined;
}

export interface Prompt {
  readonly definition: PromptDefinition;
  readonly arguments: CompiledSchema | undefined;
}

export interface FoundResource {
  readonly resource: Resource;
  readonly variables: Readonly<Record<string, string>>;
}

export type ListKind = "tools" | "resources" | "prompts";

interface Lists {
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly templates: readonly Resource[];
  readonly prompts: readonly Prompt[];
}

/** Everything that can be listed, called, read or got. Lists are sorted by name: prompt caches depend on a stable order. */
export class Registry {
  #tools = new Map<string, Tool>();
  #unlisted = new Set<string>();
  #resources = new Map<string, Resource>();
  #prompts = new Map<string, Prompt>();
  #lists: Lists | undefined;

  /** A tool that is not listed can be called all the same by who knows its name. */
  addTool(tool: Tool, { isListed = true }: { readonly isListed?: boolean } = {}): void {
    assertFree(this.#tools, tool.name, "tool");
    this.#tools.set(tool.name, tool);
    if (!isListed) this.#unlisted.add(tool.name);
    this.#lists = undefined;
  }

  addResource(definition: ResourceDefinition): void {
    assertFree(this.#resources, definition.uri, "resource");
    const pattern = UriPattern.isTemplate(definition.uri) ? new UriPattern(definition.uri) : undefined;
    this.#resources.set(definition.uri, { definition, pattern });
    this.#lists = undefined;
  }

  addPrompt(prompt: Prompt): void {
    const { name } = prompt.definition;
    assertFree(this.#prompts, name, "prompt");
    this.#prompts.set(name, prompt);
    this.#lists = undefined;
  }

  tool(name: string): Tool | undefined {
    return this.#tools.get(name);
  }

  prompt(name: string): Prompt | undefined {
    return this.#prompts.get(name);
  }

  tools(): readonly Tool[] {
    return this.#sorted().tools;
  }

  resources(): readonly Resource[] {
    return this.#sorted().resources;
  }

  templates(): readonly Resource[] {
    return this.#sorted().templates;
  }

  prompts(): readonly Prompt[] {
    return this.#sorted().prompts;
  }

  /** An exact URI wins over a template; among templates the first by URI. */
  findResource(uri: string): FoundResource | undefined {
    const exact = this.#resources.get(uri);
    if (exact !== undefined && exact.pattern === undefined) return { resource: exact, variables: {} };
    for (const resource of this.templates()) {
      const variables = resource.pattern?.match(uri);
      if (variables !== undefined) return { resource, variables };
    }
    return undefined;
  }

  template(uriTemplate: string): Resource | undefined {
    return this.#resources.get(uriTemplate);
  }

  #sorted(): Lists {
    if (this.#lists !== undefined) return this.#lists;
    const resources = [...this.#resources.values()].sort((a, b) => compare(a.definition.uri, b.definition.uri));
    this.#lists = {
      tools: [...this.#tools.values()]
        .filter(({ name }) => !this.#unlisted.has(name))
        .sort((a, b) => compare(a.name, b.name)),
      resources: resources.filter(({ pattern }) => pattern === undefined),
      templates: resources.filter(({ pattern }) => pattern !== undefined),
      prompts: [...this.#prompts.values()].sort((a, b) => compare(a.definition.name, b.definition.name)),
    };
    return this.#lists;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function assertFree(map: ReadonlyMap<string, unknown>, name: string, kind: string): void {
  if (map.has(name)) throw new Error(`there is already a ${kind} named "${name}"`);
}
