import type { Prompt, Registry, Resource, Tool } from "../capabilities/registry.ts";
import type { Governor } from "../governance/governor.ts";
import type { AskerPolicy } from "../governance/policy/asker-policy.ts";
import type { Objection, Terms } from "../governance/policy/terms.ts";
import { type Asker, type Subject, unknownSubject } from "../governance/subject.ts";
import type { Caller } from "./caller.ts";
import { promptSubject, resourceSubject, toolSubject } from "./subjects.ts";

export interface ViewOptions {
  readonly registry: Registry;
  readonly governor: Governor | undefined;
  readonly timeoutMs: number;
}

interface Kept<T> {
  /** The registry's own list that this one was made of. */
  readonly from: readonly T[];
  readonly list: readonly T[];
}

/** What a caller may know of. Lists are made once for each caller, policy and state of the registry. */
export class View {
  readonly #options: ViewOptions;
  readonly #tools = new WeakMap<AskerPolicy, Kept<Tool>>();
  readonly #resources = new WeakMap<AskerPolicy, Kept<Resource>>();
  readonly #templates = new WeakMap<AskerPolicy, Kept<Resource>>();
  readonly #prompts = new WeakMap<AskerPolicy, Kept<Prompt>>();

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  /** Neither what is hidden nor what would be refused in any case: a model should not try. */
  tools(caller: Caller): readonly Tool[] {
    const { registry } = this.#options;
    return this.#filtered(this.#tools, registry.tools(), caller, (policy) => {
      return (tool) => objectionOf(policy.termsOf(this.subjectOf(tool))) === undefined;
    });
  }

  toolCount(asker: Asker): number {
    const { governor, registry } = this.#options;
    const policy = governor?.policyFor(asker);
    if (policy === undefined) return registry.tools().length;
    return registry.tools().filter((tool) => objectionOf(policy.termsOf(this.subjectOf(tool))) === undefined).length;
  }

  /** All but what is hidden: also what the caller may not use. */
  known(caller: Caller): readonly Tool[] {
    const tools = this.#options.registry.tools();
    return tools.filter((tool) => this.termsOf(tool, caller)?.hidden === undefined);
  }

  resources(caller: Caller): readonly Resource[] {
    const { registry } = this.#options;
    return this.#filtered(this.#resources, registry.resources(), caller, seesResource);
  }

  templates(caller: Caller): readonly Resource[] {
    const { registry } = this.#options;
    return this.#filtered(this.#templates, registry.templates(), caller, seesResource);
  }

  prompts(caller: Caller): readonly Prompt[] {
    const { registry } = this.#options;
    return this.#filtered(this.#prompts, registry.prompts(), caller, (policy) => {
      return ({ definition }) => objectionOf(policy.termsOf(promptSubject(definition.name))) === undefined;
    });
  }

  subjectOf(tool: Tool): Subject {
    return toolSubject(tool, this.#options.timeoutMs);
  }

  /** What a completion is asked for. */
  subjectOfReference(ref: Reference): Subject {
    if (ref.type === "ref/prompt") return promptSubject(ref.name);
    const { registry } = this.#options;
    const resource = registry.template(ref.uri) ?? registry.findResource(ref.uri)?.resource;
    return resource === undefined ? unknownSubject("resource", ref.uri) : resourceSubject(ref.uri, resource);
  }

  /** What the policy says of a tool to this caller; nothing where there is no policy. */
  termsOf(tool: Tool, caller: Caller): Terms | undefined {
    return this.#options.governor?.policyFor(caller).termsOf(this.subjectOf(tool));
  }

  objectionTo(tool: Tool, caller: Caller): Objection | undefined {
    const terms = this.termsOf(tool, caller);
    return terms === undefined ? undefined : objectionOf(terms);
  }

  /** A tool as far as the caller may know of it. */
  tool(name: string, caller: Caller): Tool | undefined {
    const tool = this.#options.registry.tool(name);
    return tool === undefined || this.objectionTo(tool, caller) !== undefined ? undefined : tool;
  }

  sees(uri: string, caller: Caller): boolean {
    const { governor, registry } = this.#options;
    if (governor === undefined) return true;
    const resource = registry.findResource(uri)?.resource;
    const subject = resource === undefined ? unknownSubject("resource", uri) : resourceSubject(uri, resource);
    return objectionOf(governor.policyFor(caller).termsOf(subject)) === undefined;
  }

  assertOpen(subject: Subject, caller: Caller): void {
    const { governor } = this.#options;
    governor?.assertOpen(governor.policyFor(caller), subject);
  }

  #filtered<T>(
    kept: WeakMap<AskerPolicy, Kept<T>>,
    from: readonly T[],
    caller: Caller,
    toFilter: (policy: AskerPolicy) => (item: T) => boolean,
  ): readonly T[] {
    const policy = this.#options.governor?.policyFor(caller);
    if (policy === undefined) return from;
    const known = kept.get(policy);
    if (known?.from === from) return known.list;
    const list = from.filter(toFilter(policy));
    kept.set(policy, { from, list });
    return list;
  }
}

export type Reference =
  | { readonly type: "ref/prompt"; readonly name: string }
  | { readonly type: "ref/resource"; readonly uri: string };

function seesResource(policy: AskerPolicy): (resource: Resource) => boolean {
  return (resource) => objectionOf(policy.termsOf(resourceSubject(resource.definition.uri, resource))) === undefined;
}

function objectionOf({ hidden, denied }: Terms): Objection | undefined {
  return hidden ?? denied;
}
