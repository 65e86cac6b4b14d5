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

export interface Resource extends ResourceDefinition {
  /** Set when the URI is a template. */
  readonly pattern: UriPattern | undefined;
}

export interface Prompt extends Omit<PromptDefinition, "arguments"> {
  readonly arguments: CompiledSchema | undefined;
}

export interface FoundResource {
  readonly resource: Resource;
  readonly variables: Readonly<Record<string, string>>;
}

export type ListKind = "tools" | "resources" | "prompts";

/** Everything that can be listed, called, read or got. Lists are sorted by name: prompt caches depend on a stable order. */
export class Registry {
  #tools = new Map<string, Tool>();
  #resources = new Map<string, Resource>();
  #prompts = new Map<string, Prompt>();
  #sorted = new Map<string, readonly unknown[]>();

  addTool(tool: Tool): void {
    assertFree(this.#tools, tool.name, "tool");
    this.#tools.set(tool.name, tool);
    this.#sorted.clear();
  }

  addResource(definition: ResourceDefinition): void {
    assertFree(this.#resources, definition.uri, "resource");
    const pattern = UriPattern.isTemplate(definition.uri) ? new UriPattern(definition.uri) : undefined;
    this.#resources.set(definition.uri, Object.assign(Object.create(definition), { pattern }));
    this.#sorted.clear();
  }

  addPrompt(prompt: Prompt): void {
    assertFree(this.#prompts, prompt.name, "prompt");
    this.#prompts.set(prompt.name, prompt);
    this.#sorted.clear();
  }

  tool(name: string): Tool | undefined {
    return this.#tools.get(name);
  }

  prompt(name: string): Prompt | undefined {
    return this.#prompts.get(name);
  }

  tools(): readonly Tool[] {
    return this.#list("tools", () => [...this.#tools.values()].sort(byName));
  }

  resources(): readonly Resource[] {
    return this.#list("resources", () => this.#allResources().filter(({ pattern }) => pattern === undefined));
  }

  templates(): readonly Resource[] {
    return this.#list("templates", () => this.#allResources().filter(({ pattern }) => pattern !== undefined));
  }

  prompts(): readonly Prompt[] {
    return this.#list("prompts", () => [...this.#prompts.values()].sort(byName));
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

  #allResources(): Resource[] {
    return [...this.#resources.values()].sort((a, b) => compare(a.uri, b.uri));
  }

  #list<T>(key: string, make: () => readonly T[]): readonly T[] {
    const cached = this.#sorted.get(key);
    // Each key is only ever written by the one accessor that names it.
    if (cached !== undefined) return cached as readonly T[];
    const made = make();
    this.#sorted.set(key, made);
    return made;
  }
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return compare(a.name, b.name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function assertFree(map: ReadonlyMap<string, unknown>, name: string, kind: string): void {
  if (map.has(name)) throw new Error(`there is already a ${kind} named "${name}"`);
}
