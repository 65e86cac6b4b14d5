import type { Confirmation, Effect, PermissionScope, Price } from "../capability/define.ts";
import type { JsonSchema } from "../capability/schema.ts";

/** How the fields of the input are passed to the function. */
export interface CallStyle {
  /** object: the input is the one object parameter. positional: each parameter is a field, in this order. */
  readonly style: "object" | "positional";
  /** With `rest`, the last one is an array and is spread. */
  readonly parameters: readonly string[];
  readonly rest?: boolean;
  /** Python: may share its process with other calls. */
  readonly isAsync?: boolean;
  /** The index of the parameter that takes the context, if there is one. */
  readonly context?: number;
}

/** A function as a tool: plain JSON, the same for every language. */
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
  /** JSON pointers, with `*` for each item, of fields that are a Date in the handler and ISO text on the wire. */
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

/** Why a handler, or a whole file, is not served. */
export interface HandlerProblem {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
  /** What to write instead. */
  readonly fix?: string;
}

export interface FileDescription {
  readonly file: string;
  readonly handlers: readonly HandlerDescription[];
  readonly problems: readonly HandlerProblem[];
  /** Files whose change affects this one. */
  readonly dependencies: readonly string[];
}
