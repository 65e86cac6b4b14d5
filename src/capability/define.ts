import type { ContentBlock, PromptMessage, ResourceContents, ToolResult } from "./content.ts";
import type { CallContext } from "./context.ts";
import type { SchemaSource, SchemaValue } from "./schema.ts";
import type { SkillFacts } from "./skill.ts";

/** What a tool can reach; `mcp.capabilities` shows it. */
export type PermissionScope = "workspace" | "network" | "exec";

/** MCP's four annotation hints. All four are sent to clients. */
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
  /** `required`: clients without the tasks extension are refused. `optional`: they get the result when the call ends. */
  readonly support: "optional" | "required";
  /** `at-once`: the task starts with the call. `explicit`: when the handler calls `context.startTask()`. Default `at-once`. */
  readonly start?: "at-once" | "explicit";
  /** How long the result is kept. Default one hour. */
  readonly ttlMs?: number;
}

/** The cost of a call, in the unit of budgets. */
export interface Price {
  readonly fixed: number;
  readonly perSecond: number;
  readonly perEgressMb: number;
  /** The most that one call may cost; it is reserved before the call runs. */
  readonly max: number | undefined;
}

/** `operator`: an operator of the server. `client`: the user of the client, which is a convenience and no security boundary. */
export type Confirmation = "operator" | "client";

type Awaitable<T> = T | Promise<T>;

/** What a handler may return: an MCP result, a list of content blocks, or any JSON value. */
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
  /** Default: not read-only, destructive, not idempotent, open world. */
  readonly effect?: Partial<Effect>;
  readonly scope?: PermissionScope;
  readonly timeoutMs?: number;
  /** A number is the fixed part. `context.charge` adds costs that are known only during the call. */
  readonly cost?: number | Partial<Price>;
  readonly confirm?: Confirmation;
  /** The skill that explains its use, as `category/name`. */
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
  /** From 0 (optional) to 1 (required). */
  readonly priority?: number;
  /** ISO 8601. */
  readonly lastModified?: string;
}

interface SameTool {
  readonly name: string;
  /** All names of the tool, including `name`. */
  readonly names: readonly string[];
  readonly scope: PermissionScope;
  /** The arguments of the equivalent tool call. Throws for invalid variables. */
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
  /** The normal form of variables that have several spellings (`a/../b` for `b`); policy rules see this form. */
  normalize?(variables: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
  /** The tool that returns the same data: the policy for that tool applies to the resource. */
  readonly sameAs?: SameTool;
  /** Set on users' resources: they can call `context.charge`. */
  readonly mayCharge?: boolean;
  read(uri: string, variables: Readonly<Record<string, string>>, context: CallContext): Awaitable<ResourceOutput>;
  /** For a template over resources that are listed individually: the one that a URI belongs to. Its policy applies. */
  resolve?(uri: string): ResourceDefinition | undefined;
  /** Set on the resource that is a skill. */
  readonly skill?: SkillFacts;
  /** Called once when the server starts. Call `changed` when subscribers should read again. */
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

/** Defines a tool. Export the result from a file under `handlers.paths`. */
export function defineHandler<I extends SchemaSource, O extends SchemaSource>(
  definition: HandlerDefinition<I, O>,
): Definition {
  return { [DEFINITION]: true, kind: "handler", definition };
}

/** Defines a resource, or a resource template, that clients can list and read. */
export function defineResource(definition: ResourceDefinition): Definition {
  return { [DEFINITION]: true, kind: "resource", definition };
}

/** Defines a prompt that clients can offer to their users. */
export function definePrompt<A extends SchemaSource>(definition: PromptDefinition<A>): Definition {
  return { [DEFINITION]: true, kind: "prompt", definition };
}

/** The symbol is global: definitions of another copy of the package are recognised too. */
export function isDefinition(value: unknown): value is Definition {
  return typeof value === "object" && value !== null && DEFINITION in value;
}
