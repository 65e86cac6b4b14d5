import type { ContentBlock, PromptMessage, ResourceContents, ToolResult } from "./content.ts";
import type { CallContext } from "./context.ts";
import type { SchemaSource, SchemaValue } from "./schema.ts";
import type { SkillFacts } from "./skill.ts";

/** What a tool reaches, as `mcp.capabilities` shows it. */
export type PermissionScope = "workspace" | "network" | "exec";

/** MCP's four hints. They are shown to clients as they stand here, so each one must be said. */
export interface Effect {
  readonly readOnly: boolean;
  readonly destructive: boolean;
  readonly idempotent: boolean;
  readonly openWorld: boolean;
}

export interface Icon {
  readonly src: string;
  readonly mimeType?: string;
  readonly sizes?: readonly string[];
}

export interface TaskOptions {
  /** `required`: clients without the tasks extension are refused. `optional`: they are answered when the call is done. */
  readonly support: "optional" | "required";
  /** `at-once`: the task starts with the call. `explicit`: when the handler calls `context.startTask()`. Default `at-once`. */
  readonly start?: "at-once" | "explicit";
  /** How long the result is kept. Default one hour. */
  readonly ttlMs?: number;
}

/** What a call costs, in the unit that budgets are given in. */
export interface Price {
  readonly fixed: number;
  readonly perSecond: number;
  readonly perEgressMb: number;
  /** The most that one call may cost; it is reserved before the call runs. */
  readonly max: number | undefined;
}

/** `operator`: somebody who runs the server. `client`: the person at the client, which is a convenience and no boundary. */
export type Confirmation = "operator" | "client";

type Awaitable<T> = T | Promise<T>;

/** What a handler may return: a whole result, a list of content blocks, or any value that JSON can express. */
export type HandlerOutput =
  | ToolResult
  | readonly ContentBlock[]
  | string
  | number
  | boolean
  | null
  | undefined
  | object;

export interface HandlerDefinition<I extends SchemaSource = SchemaSource, O extends SchemaSource = SchemaSource> {
  readonly name: string;
  readonly description: string;
  readonly title?: string;
  readonly version?: string;
  readonly input?: I;
  readonly output?: O;
  /** Default: nothing is promised (not read-only, destructive, not idempotent, open world). */
  readonly effect?: Partial<Effect>;
  readonly scope?: PermissionScope;
  readonly timeoutMs?: number;
  /** What a call costs: a number is the fixed part. `context.charge` adds what is known only when it ran. */
  readonly cost?: number | Partial<Price>;
  readonly confirm?: Confirmation;
  /** The skill that says how to use it, as `category/name`. */
  readonly skill?: string;
  readonly icons?: readonly Icon[];
  readonly task?: TaskOptions;
  readonly _meta?: Readonly<Record<string, unknown>>;
  run(input: SchemaValue<I>, context: CallContext): Awaitable<HandlerOutput>;
}

export type Completer = (
  value: string,
  others: Readonly<Record<string, string>>,
  context: CallContext,
) => Awaitable<readonly string[]>;

type ResourceOutput = string | Uint8Array | ResourceContents | readonly ResourceContents[];

interface Annotations {
  readonly audience?: readonly ("user" | "assistant")[];
  /** From 0, can be left out, to 1, must be there. */
  readonly priority?: number;
  /** ISO 8601. */
  readonly lastModified?: string;
}

interface SameTool {
  readonly name: string;
  /** All names of the tool, its own among them. */
  readonly names: readonly string[];
  readonly scope: PermissionScope;
  /** The same as arguments of the tool; throws where they are none. */
  toArgs(variables: Readonly<Record<string, string>>): Readonly<Record<string, unknown>>;
}

export interface ResourceDefinition {
  /** A URI, or an RFC 6570 template such as `orders://{id}`: then it is listed as a template. */
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly annotations?: Annotations;
  readonly icons?: readonly Icon[];
  /** Suggestions for the variables of a template, by name. */
  readonly complete?: Readonly<Record<string, Completer>>;
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** For a template whose variables can be written in several ways for one thing, `a/../b` for `b`: the one to judge by. */
  normalize?(variables: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
  /** The tool that gives the same: what the policy says of it holds for the resource. */
  readonly sameAs?: SameTool;
  /** Set on users' resources: they can report costs while they are read. */
  readonly mayCharge?: boolean;
  read(uri: string, variables: Readonly<Record<string, string>>, context: CallContext): Awaitable<ResourceOutput>;
  /** For a template over things that are listed one by one: the one that a URI belongs to. Policy judges by that one. */
  resolve?(uri: string): ResourceDefinition | undefined;
  /** Set on the resource that is a skill. */
  readonly skill?: SkillFacts;
  /** Called once when the server starts; call `changed` whenever subscribers should read again. */
  watch?(changed: () => void, signal: AbortSignal): void;
}

type PromptOutput =
  | string
  | readonly PromptMessage[]
  | { readonly description?: string; readonly messages: readonly PromptMessage[] };

export interface PromptDefinition<A extends SchemaSource = SchemaSource> {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  /** An object schema whose fields are strings. */
  readonly arguments?: A;
  readonly complete?: Readonly<Record<string, Completer>>;
  readonly icons?: readonly Icon[];
  readonly _meta?: Readonly<Record<string, unknown>>;
  run(args: SchemaValue<A>, context: CallContext): Awaitable<PromptOutput>;
}

const DEFINITION: unique symbol = Symbol.for("owlclaw.definition");

export type Definition =
  | { readonly [DEFINITION]: true; readonly kind: "handler"; readonly definition: HandlerDefinition }
  | { readonly [DEFINITION]: true; readonly kind: "resource"; readonly definition: ResourceDefinition }
  | { readonly [DEFINITION]: true; readonly kind: "prompt"; readonly definition: PromptDefinition };

/** Makes a tool of a function and its schemas. Export the result from a file under `handlers.paths`. */
export function defineHandler<I extends SchemaSource, O extends SchemaSource>(
  definition: HandlerDefinition<I, O>,
): Definition {
  return { [DEFINITION]: true, kind: "handler", definition };
}

/** Makes a resource, or a resource template, that clients can list and read. */
export function defineResource(definition: ResourceDefinition): Definition {
  return { [DEFINITION]: true, kind: "resource", definition };
}

/** Makes a prompt that clients can offer to their users. */
export function definePrompt<A extends SchemaSource>(definition: PromptDefinition<A>): Definition {
  return { [DEFINITION]: true, kind: "prompt", definition };
}

/** Recognises what a module exported; the symbol is shared, so that two copies of the package understand each other. */
export function isDefinition(value: unknown): value is Definition {
  return typeof value === "object" && value !== null && DEFINITION in value;
}
