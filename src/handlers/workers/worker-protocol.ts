import { isRecord } from "../../platform/records.ts";
import type { JsonSchema } from "../../capability/schema.ts";
import type { CallStyle, HandlerProblem } from "../handler-description.ts";

/**
 * The messages between the server and a worker process, the same for Node and Python: JSON objects, one per line,
 * in UTF-8, on descriptor 3 of the worker (two descriptors inside a sandbox). Each has a type `t`.
 *
 * The server numbers its requests (`id`, increasing by one per worker) and a worker starts them in this order. A
 * worker answers each with `done`, `fail` or `skipped`, and may send other messages with the same `id` before that.
 * The worker exits when the stream ends.
 *
 * Descriptor 4, where there is one, is the file of call-registers.ts: the worker writes there which request it starts, so
 * that the server knows which requests a killed worker had not started.
 */
/** Inside a sandbox, the handlers' files are mounted below this folder, each at its own path. */
export const SANDBOXED_FILES = "/handlers";

export type ToWorker =
  /** Gives a target a number; later messages use the number. */
  | { readonly t: "target"; readonly n: number; readonly target: Target }
  /** Texts to import instead of these files, which are broken on disk. */
  | { readonly t: "sources"; readonly texts: Readonly<Record<string, string>> }
  /** Imports the file and answers with a `FileReport`. */
  | { readonly t: "describe"; readonly id: number; readonly file: string }
  | {
      readonly t: "call";
      readonly id: number;
      readonly n: number;
      readonly op: Operation;
      readonly input: unknown;
      readonly ctx: WireContext | undefined;
    }
  /** From now on, the resource's changes are reported with `changed`. */
  | { readonly t: "watch"; readonly id: number; readonly n: number }
  | { readonly t: "cancel"; readonly id: number; readonly error: WireError }
  /** Answers question `q` of call `id`. */
  | {
      readonly t: "answer";
      readonly id: number;
      readonly q: number;
      readonly value?: unknown;
      readonly error?: WireError;
    }
  | { readonly t: "ping" };

export type FromWorker =
  /** The first message: the worker can take requests. */
  | { readonly t: "hello"; readonly version: string }
  | {
      readonly t: "done";
      readonly id: number;
      readonly value?: unknown;
      readonly bytes?: string;
      /** Duration of the call, if it is traced. */
      readonly ms?: number;
    }
  | { readonly t: "fail"; readonly id: number; readonly error: WireError; readonly ms?: number }
  /** The server revoked it before it was started. */
  | { readonly t: "skipped"; readonly id: number }
  | {
      readonly t: "progress";
      readonly id: number;
      readonly done?: number;
      readonly total?: number;
      readonly message?: string;
    }
  | { readonly t: "log"; readonly id: number; readonly level: string; readonly data: unknown; readonly logger?: string }
  | {
      readonly t: "ask";
      readonly id: number;
      readonly q: number;
      readonly what: QuestionKind;
      readonly request?: unknown;
      readonly key?: string;
    }
  | { readonly t: "charge"; readonly id: number; readonly amount: number }
  | { readonly t: "listChanged"; readonly id: number; readonly list: string }
  | { readonly t: "closeStream"; readonly id: number }
  /** The resource that is target `n` should be read again. */
  | { readonly t: "changed"; readonly n: number }
  /** For the operator's log. */
  | {
      readonly t: "notice";
      readonly level: "info" | "warning" | "error";
      readonly message: string;
      readonly text?: string;
    }
  | { readonly t: "pong" };

/** run: a tool or a prompt. read: a resource; input is `{uri, variables}`. complete: input is `{argument, value, others}`. */
export type Operation = "run" | "read" | "complete";

export type QuestionKind = "elicit" | "sample" | "roots" | "startTask" | "sandbox";

export type Target =
  | { readonly kind: "definition"; readonly file: string; readonly of: DefinitionKind; readonly name: string }
  | {
      readonly kind: "function";
      readonly file: string;
      readonly exportName: string;
      readonly call: CallStyle;
      readonly dates: readonly string[];
      readonly isGenerator: boolean;
    };

/** What a worker gets of the call's context; everything else is a message. */
export interface WireContext {
  readonly principal: unknown;
  readonly traceId: string;
  /** W3C Trace Context, set while the call is traced. */
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly protocolVersion: string;
}

/** An error as JSON; `kind` is set when an `OwlError` was thrown. */
export interface WireError {
  readonly message: string;
  readonly kind?: string;
  readonly hint?: string;
  readonly facts?: Readonly<Record<string, unknown>>;
  readonly retryable?: boolean;
  readonly stack?: string;
  /** Set when a schema that is checked in the worker refused the input or the output. */
  readonly issues?: readonly { readonly path: string; readonly message: string }[];
  readonly side?: "input" | "output";
  /** The number of the refused question whose error the handler rethrew. */
  readonly q?: number;
  /** The function was not called: its file could not be loaded. */
  readonly unloaded?: boolean;
}

export type DefinitionKind = "handler" | "resource" | "prompt";

/** The result of importing a file. Python fills `functions` too: one process does both there. */
export interface FileReport {
  readonly definitions: readonly WireDefinition[];
  readonly functions?: readonly unknown[];
  readonly problems: readonly HandlerProblem[];
  readonly dependencies?: readonly string[];
  /** Other files that were read and are not watched: the interpreter, package folders, modules elsewhere. */
  readonly reads?: readonly string[];
  /** It could not be imported at all. */
  readonly isBroken?: boolean;
}

/** A definition without its functions. `fields` are those that are plain JSON. */
export interface WireDefinition {
  readonly kind: DefinitionKind;
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly input?: WireSchema;
  readonly output?: WireSchema;
  /** Arguments that have a completer. */
  readonly complete?: readonly string[];
  readonly isWatchable?: boolean;
}

export interface WireSchema {
  readonly json: JsonSchema;
  /** A schema library's rules are checked in the worker; JSON Schema is checked in the server. */
  readonly isCheckedInWorker: boolean;
}

type Fields = Readonly<Record<string, unknown>>;
type Check = (fields: Fields) => boolean;

const isNumber = (value: unknown): boolean => typeof value === "number";
const isText = (value: unknown): boolean => typeof value === "string";
const isTextIfAny = (value: unknown): boolean => value === undefined || typeof value === "string";
const isNumberIfAny = (value: unknown): boolean => value === undefined || typeof value === "number";

const hasId: Check = ({ id }) => isNumber(id);

/** The required members of each message: a worker in a sandbox is not trusted. */
const CHECKS: Readonly<Record<FromWorker["t"], Check>> = {
  hello: ({ version }) => isText(version),
  done: ({ id, bytes, ms }) => isNumber(id) && isTextIfAny(bytes) && isNumberIfAny(ms),
  fail: ({ id, error, ms }) => isNumber(id) && isError(error) && isNumberIfAny(ms),
  skipped: hasId,
  progress: ({ id, done, total, message }) =>
    isNumber(id) && isNumberIfAny(done) && isNumberIfAny(total) && isTextIfAny(message),
  log: ({ id, level, logger }) => isNumber(id) && isText(level) && isTextIfAny(logger),
  ask: ({ id, q, what, key }) => isNumber(id) && isNumber(q) && isText(what) && isTextIfAny(key),
  charge: ({ id, amount }) => isNumber(id) && typeof amount === "number" && Number.isFinite(amount) && amount >= 0,
  listChanged: ({ id, list }) => isNumber(id) && isText(list),
  closeStream: hasId,
  changed: ({ n }) => isNumber(n),
  notice: ({ level, message, text }) =>
    (level === "info" || level === "warning" || level === "error") && isText(message) && isTextIfAny(text),
  pong: () => true,
};

export function isFromWorker(value: unknown): value is FromWorker {
  if (!isRecord(value)) return false;
  const { t } = value;
  return isType(t) && CHECKS[t](value);
}

function isType(value: unknown): value is FromWorker["t"] {
  return typeof value === "string" && Object.hasOwn(CHECKS, value);
}

function isError(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { message, kind, hint, stack, facts, issues, q, unloaded = false } = value;
  return (
    isText(message) &&
    [kind, hint, stack].every(isTextIfAny) &&
    (facts === undefined || isRecord(facts)) &&
    (issues === undefined || (Array.isArray(issues) && issues.every(isIssue))) &&
    isNumberIfAny(q) &&
    typeof unloaded === "boolean"
  );
}

function isIssue(value: unknown): boolean {
  return isRecord(value) && isText(value["path"]) && isText(value["message"]);
}
