import type { CallContext } from "./context.ts";
import type {
  PromptDefinition,
  ResourceDefinition,
  Confirmation,
  Effect,
  HandlerOutput,
  Icon,
  PermissionScope,
  Price,
  TaskOptions,
} from "./define.ts";
import { UriPattern } from "./uri-pattern.ts";
import type { CompiledSchema } from "./schema.ts";

/** A tool as the pipeline runs it and as clients see it: a built-in tool or a user's handler. */
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
  /** Where its author set `timeoutMs`, for error messages: `@timeout in its doc comment`. */
  readonly timeoutSetBy?: string | undefined;
  readonly task: Required<TaskOptions> | undefined;
  readonly price: Price;
  /** Set on users' handlers: they can call `context.charge`. */
  readonly mayCharge?: boolean;
  /** Set when several names stand for one operation: a policy rule on one of them holds for all. */
  readonly operation?: Operation;
  /** The approval that its author requires; policy may require more. */
  readonly confirm: Confirmation | undefined;
  /** URI of the skill that explains its use. */
  readonly skill: string | undefined;
  readonly input: CompiledSchema;
  readonly output: CompiledSchema | undefined;
  run(input: unknown, context: CallContext): HandlerOutput | Promise<HandlerOutput>;
}

export interface Operation {
  readonly name: string;
  readonly names: readonly string[];
  /** The normal form of arguments that have several spellings (`a/../b` for `b`); policy rules see this form. */
  normalize?(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
}

/** Longer than any escaped file path. Bounds the time that matching a URI against the templates takes. */
const MAX_URI_CHARS = 16_384;

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

/** Everything that one source adds, such as the users' handlers or the skills. */
interface Contribution {
  readonly tools?: readonly Tool[];
  readonly resources?: readonly ResourceDefinition[];
  readonly prompts?: readonly Prompt[];
}

export interface Replaced {
  readonly changed: readonly ListKind[];
  /** Left out, because another source has the name. */
  readonly refused: readonly { readonly list: ListKind; readonly name: string }[];
}

/** Everything that can be listed, called, read or got. Lists are sorted by name: prompt caches depend on a stable order. */
export class Registry {
  readonly #tools = new ItemsBySource<Tool>("tool", ({ name }) => name);
  readonly #resources = new ItemsBySource<Resource>("resource", ({ definition }) => definition.uri);
  readonly #prompts = new ItemsBySource<Prompt>("prompt", ({ definition }) => definition.name);
  readonly #unlisted = new Map<string, Tool>();
  #lists: Lists | undefined;

  addTool(tool: Tool): void {
    this.#tools.add(tool);
    this.#lists = undefined;
  }

  /** Adds a tool that is not listed, but can be called. A listed tool of the same name comes first. */
  addUnlisted(tool: Tool): void {
    this.#unlisted.set(tool.name, tool);
  }

  addResource(definition: ResourceDefinition): void {
    this.#resources.add(toResource(definition));
    this.#lists = undefined;
  }

  addPrompt(prompt: Prompt): void {
    this.#prompts.add(prompt);
    this.#lists = undefined;
  }

  /** Replaces everything that `source` added before. Names of other sources are refused. */
  replace(source: string, { tools = [], resources = [], prompts = [] }: Contribution): Replaced {
    const outcomes: readonly (ItemsChange & { readonly list: ListKind })[] = [
      { list: "tools", ...this.#tools.replace(source, tools) },
      { list: "resources", ...this.#resources.replace(source, resources.map(toResource)) },
      { list: "prompts", ...this.#prompts.replace(source, prompts) },
    ];
    this.#lists = undefined;
    return {
      changed: outcomes.filter(({ isChanged }) => isChanged).map(({ list }) => list),
      refused: outcomes.flatMap(({ list, refused }) => refused.map((name) => ({ list, name }))),
    };
  }

  tool(name: string): Tool | undefined {
    return this.#tools.get(name) ?? this.#unlisted.get(name);
  }

  prompt(name: string): Prompt | undefined {
    return this.#prompts.get(name);
  }

  tools(): readonly Tool[] {
    return this.#sorted().tools;
  }

  toolsFrom(source: string): readonly Tool[] {
    return this.#tools.from(source);
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
    if (uri.length > MAX_URI_CHARS) return undefined;
    for (const resource of this.templates()) {
      const { definition } = resource;
      if (definition.resolve !== undefined && uri.startsWith(definition.uri.split("{", 1)[0] ?? "")) {
        const own = definition.resolve(uri);
        return own === undefined ? undefined : { resource: toResource(own), variables: {} };
      }
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
    const resources = this.#resources.sorted();
    this.#lists = {
      tools: this.#tools.sorted(),
      resources: resources.filter(({ pattern }) => pattern === undefined),
      templates: resources.filter(({ pattern }) => pattern !== undefined),
      prompts: this.#prompts.sorted(),
    };
    return this.#lists;
  }
}

const patterned = new WeakMap<ResourceDefinition, Resource>();

/** Returns the same object for the same definition: `replace` compares by identity. */
function toResource(definition: ResourceDefinition): Resource {
  let resource = patterned.get(definition);
  if (resource === undefined) {
    const pattern = UriPattern.isTemplate(definition.uri) ? new UriPattern(definition.uri) : undefined;
    resource = { definition, pattern };
    patterned.set(definition, resource);
  }
  return resource;
}

interface ItemsChange {
  readonly isChanged: boolean;
  /** Names that another source has. */
  readonly refused: readonly string[];
}

/** Items by name, each with the source that added it. */
class ItemsBySource<T> {
  readonly #kind: string;
  readonly #nameOf: (item: T) => string;
  #items = new Map<string, { readonly item: T; readonly source: string | undefined }>();

  constructor(kind: string, nameOf: (item: T) => string) {
    this.#kind = kind;
    this.#nameOf = nameOf;
  }

  add(item: T): void {
    const name = this.#nameOf(item);
    if (this.#items.has(name)) throw new Error(`there is already a ${this.#kind} named "${name}"`);
    this.#items.set(name, { item, source: undefined });
  }

  get(name: string): T | undefined {
    return this.#items.get(name)?.item;
  }

  /** Readers see either all of the old items or all of the new ones. */
  replace(source: string, items: readonly T[]): ItemsChange {
    const before = this.#items;
    const after = new Map([...before].filter(([, entry]) => entry.source !== source));
    const refused: string[] = [];
    for (const item of items) {
      const name = this.#nameOf(item);
      if (after.has(name)) refused.push(name);
      else after.set(name, { item, source });
    }
    this.#items = after;
    const isSame =
      after.size === before.size && [...after].every(([name, { item }]) => before.get(name)?.item === item);
    return { isChanged: !isSame, refused };
  }

  from(source: string): readonly T[] {
    return this.sorted().filter((item) => this.#items.get(this.#nameOf(item))?.source === source);
  }

  sorted(): readonly T[] {
    return [...this.#items].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { item }]) => item);
  }
}

export type Change =
  | { readonly kind: "list"; readonly list: ListKind }
  | { readonly kind: "resource"; readonly uri: string };

/** Tells open connections that a list or a resource changed. */
export class Changes {
  #listeners = new Set<(change: Change) => void>();

  listChanged(list: ListKind): void {
    this.#publish({ kind: "list", list });
  }

  resourceUpdated(uri: string): void {
    this.#publish({ kind: "resource", uri });
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #publish(change: Change): void {
    for (const listener of this.#listeners) listener(change);
  }
}
