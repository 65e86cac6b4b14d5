import type { Confirmation, Effect, PermissionScope, Price } from "../capability/define.ts";
import type { JsonSchema } from "../capability/schema.ts";

/** How the fields of the input become the arguments of the function. */
export interface CallStyle {
  /** object: the one object parameter is the input itself. positional: each parameter is a field, in this order. */
  readonly style: "object" | "positional";
  /** The names of the fields; with `rest`, the last one takes an array and is spread. */
  readonly parameters: readonly string[];
  readonly rest?: boolean;
  /** Python: may share its process with other calls. */
  readonly isAsync?: boolean;
  /** The place of the parameter that takes the context, where there is one. */
  readonly context?: number;
}

/** A function of a user's file as a tool: plain JSON, so that any extractor in any language can make it. */
export interface HandlerDescription {
  /** The function's name as written. */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly version?: string;
  /** 2020-12, type object, additionalProperties false. */
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema;
  readonly call: CallStyle;
  /** JSON pointers, `*` for each item, of fields that are a Date in the handler and ISO text on the wire. */
  readonly dates: readonly string[];
  readonly effect?: Partial<Effect>;
  readonly scope?: PermissionScope;
  readonly timeoutMs?: number;
  readonly cost?: number | Partial<Price>;
  readonly confirm?: Confirmation;
  /** `category/name`, without `skill://`. */
  readonly skill?: string;
  readonly isHidden?: boolean;
  readonly examples?: readonly unknown[];
  readonly exportName: string;
  readonly line: number;
  readonly isGenerator: boolean;
}

/** What keeps a handler, or a whole file, from being served. */
export interface HandlerProblem {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
  /** What to write in its place. */
  readonly fix?: string;
}

export interface FileDescription {
  readonly file: string;
  readonly handlers: readonly HandlerDescription[];
  readonly problems: readonly HandlerProblem[];
  /** Files that this one depends on: a change of one of them changes this one. */
  readonly dependencies: readonly string[];
}
