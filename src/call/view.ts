import type { Prompt, Registry, Resource, Tool } from "../capability/registry.ts";
import type { Governor } from "../governance/governor.ts";
import type { AskerPolicy } from "../governance/policy/asker-policy.ts";
import type { Objection, Terms } from "../governance/policy/terms.ts";
import type { Asker, Subject } from "../governance/subject.ts";
import type { Caller } from "./call.ts";
import { operationSubject, promptSubject, resourceSubject, toolSubject, unknownResource } from "./subjects.ts";

export interface ViewOptions {
  readonly registry: Registry;
  readonly governor: Governor | undefined;
  readonly timeoutMs: number;
}

interface Kept<T> {
  /** The list of the registry that this one was made from. */
  readonly from: readonly T[];
  readonly list: readonly T[];
}

/** What a caller may see. Lists are made once for each caller, policy and state of the registry. */
export class View {
  readonly #options: ViewOptions;
  readonly #tools = new WeakMap<AskerPolicy, Kept<Tool>>();
  readonly #resources = new WeakMap<AskerPolicy, Kept<Resource>>();
  readonly #templates = new WeakMap<AskerPolicy, Kept<Resource>>();
  readonly #prompts = new WeakMap<AskerPolicy, Kept<Prompt>>();

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  /** Leaves out tools that are hidden, or refused in any case: a model should not try them. */
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

  /** All tools but hidden ones, including those that the caller may not use. */
  known(caller: Caller): readonly Tool[] {
    const tools = this.#options.registry.tools();
    return tools.filter((tool) => this.termsOf(tool, caller)?.hidden === undefined);
  }

  resources(caller: Caller): readonly Resource[] {
    const { registry } = this.#options;
    return this.#filtered(this.#resources, registry.resources(), caller, this.#seesResource);
  }

  templates(caller: Caller): readonly Resource[] {
    const { registry } = this.#options;
    return this.#filtered(this.#templates, registry.templates(), caller, this.#seesResource);
  }

  prompts(caller: Caller): readonly Prompt[] {
    const { registry } = this.#options;
    return this.#filtered(this.#prompts, registry.prompts(), caller, (policy) => {
      return ({ definition }) => objectionOf(policy.termsOf(this.subjectOfPrompt(definition.name))) === undefined;
    });
  }

  subjectOf(tool: Tool): Subject {
    return toolSubject(tool, this.#options.timeoutMs);
  }

  /** The subject of a URI, whether a resource exists there or not. */
  subjectOfResource(uri: string, resource: Resource | undefined): Subject {
    if (resource === undefined) return unknownResource(uri);
    return resourceSubject({ uri, resource, timeoutMs: this.#options.timeoutMs });
  }

  subjectOfPrompt(name: string): Subject {
    return promptSubject(name, this.#options.timeoutMs);
  }

  subjectOfOperation(name: string, scope: string): Subject {
    return operationSubject({ name, scope, timeoutMs: this.#options.timeoutMs });
  }

  /** The subject that a completion is requested for. */
  subjectOfReference(ref: Reference): Subject {
    if (ref.type === "ref/prompt") return this.subjectOfPrompt(ref.name);
    return this.subjectOfResource(ref.uri, this.#referred(ref.uri));
  }

  /** Whether the caller may see the URI that a template becomes with these values, once each variable has one. */
  seesCompleted(ref: Reference, values: Readonly<Record<string, string>>, caller: Caller): boolean {
    const uri = ref.type === "ref/prompt" ? undefined : this.#referred(ref.uri)?.pattern?.expand(values);
    return uri === undefined || this.sees(uri, caller);
  }

  /** What the policy says about a tool for this caller; `undefined` without a policy. */
  termsOf(tool: Tool, caller: Caller): Terms | undefined {
    return this.#options.governor?.policyFor(caller).termsOf(this.subjectOf(tool));
  }

  objectionTo(tool: Tool, caller: Caller): Objection | undefined {
    const terms = this.termsOf(tool, caller);
    return terms === undefined ? undefined : objectionOf(terms);
  }

  /** The tool of this name, if the caller may use it. */
  tool(name: string, caller: Caller): Tool | undefined {
    const tool = this.#options.registry.tool(name);
    return tool === undefined || this.objectionTo(tool, caller) !== undefined ? undefined : tool;
  }

  sees(uri: string, caller: Caller): boolean {
    return this.#options.governor === undefined || this.seesPart(uri, this.#found(uri), caller);
  }

  /** The same for something that is not a resource but a part of one. */
  seesPart(uri: string, of: Resource | undefined, caller: Caller): boolean {
    const policy = this.#options.governor?.policyFor(caller);
    return policy === undefined || objectionOf(policy.termsOf(this.subjectOfResource(uri, of))) === undefined;
  }

  assertOpen(subject: Subject, caller: Caller): void {
    const { governor } = this.#options;
    governor?.assertOpen(governor.policyFor(caller), subject);
  }

  #referred(uri: string): Resource | undefined {
    return this.#options.registry.template(uri) ?? this.#options.registry.findResource(uri)?.resource;
  }

  #found(uri: string): Resource | undefined {
    try {
      return this.#options.registry.findResource(uri)?.resource;
    } catch {
      // A text that is not a URI has no resource.
      return undefined;
    }
  }

  readonly #seesResource = (policy: AskerPolicy): ((resource: Resource) => boolean) => {
    return (resource) => {
      const subject = this.subjectOfResource(resource.definition.uri, resource);
      return objectionOf(policy.termsOf(subject)) === undefined;
    };
  };

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

function objectionOf({ hidden, denied }: Terms): Objection | undefined {
  return hidden ?? denied;
}
