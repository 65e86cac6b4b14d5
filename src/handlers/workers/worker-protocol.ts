import type { JsonSchema } from "../../capability/schema.ts";
import type { CallStyle, HandlerProblem } from "../handler-description.ts";

/**
 * What the server and a worker process say to each other, the same for Node and for Python: JSON objects, one a line,
 * in UTF-8, on descriptor 3 of the worker (standard input and output inside a sandbox). Each has a type `t`.
 *
 * The server numbers its requests (`id`, rising by one on each worker) and a worker starts them in this order. A
 * worker answers each with `done`, `fail` or `skipped`, and may send other messages with the same `id` before that.
 * The end of the stream is the end of the worker.
 *
 * Descriptor 4, where there is one, is a small file that both sides have open (see call-registers.ts): the worker
 * writes there what it starts, so that the server knows what a worker that was killed had not begun.
 */
/** Inside a sandbox the handlers' files are below this folder, each at its own path. */
export const SANDBOXED_FILES = "/handlers";

export type ToWorker =
  /** Names something in a file, once; later messages use the number. */
  | { readonly t: "target"; readonly n: number; readonly target: Target }
  /** These files are broken on the disk: whoever imports them is to take these texts, from when they worked. */
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
  /** The resource shall say `changed` from now on. */
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
      /** How long it took, where the call is in a trace. */
      readonly ms?: number;
    }
  | { readonly t: "fail"; readonly id: number; readonly error: WireError; readonly ms?: number }
  /** Was taken back by the server before it was started. */
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

/** What a worker knows of the call it serves; the rest of the context are messages. */
export interface WireContext {
  readonly principal: unknown;
  readonly traceId: string;
  /** By W3C Trace Context, while somebody traces. */
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly protocolVersion: string;
}

/** An error on its way; `kind` only where the thrower chose one. */
export interface WireError {
  readonly message: string;
  readonly kind?: string;
  readonly hint?: string;
  readonly facts?: Readonly<Record<string, unknown>>;
  readonly retryable?: boolean;
  readonly stack?: string;
  /** Input, or output, that the handler's own schema refuses. */
  readonly issues?: readonly { readonly path: string; readonly message: string }[];
  readonly side?: "input" | "output";
  /** The refusal of this question went through the handler as it came. */
  readonly q?: number;
  /** The handler never ran: its file could not be loaded. */
  readonly unloaded?: boolean;
}

export type DefinitionKind = "handler" | "resource" | "prompt";

/** What importing a file showed. Python fills `functions` as well: there one process does both. */
export interface FileReport {
  readonly definitions: readonly WireDefinition[];
  readonly functions?: readonly unknown[];
  readonly problems: readonly HandlerProblem[];
  readonly dependencies?: readonly string[];
  /** What else was read, and is not watched: the interpreter, folders of packages, modules elsewhere. */
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
  /** A schema library checks in the worker, since only it knows its own rules; JSON Schema is checked in the server. */
  readonly isCheckedInWorker: boolean;
}

type Fields = Readonly<Record<string, unknown>>;
type Check = (fields: Fields) => boolean;

const isNumber = (value: unknown): boolean => typeof value === "number";
const isText = (value: unknown): boolean => typeof value === "string";
const isTextIfAny = (value: unknown): boolean => value === undefined || typeof value === "string";
const isNumberIfAny = (value: unknown): boolean => value === undefined || typeof value === "number";

const hasId: Check = ({ id }) => isNumber(id);

/** What each message must have before anybody acts on it: a worker in a sandbox may be anybody's. */
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
  if (!isFields(value)) return false;
  const { t } = value;
  return isType(t) && CHECKS[t](value);
}

function isType(value: unknown): value is FromWorker["t"] {
  return typeof value === "string" && Object.hasOwn(CHECKS, value);
}

function isError(value: unknown): boolean {
  if (!isFields(value)) return false;
  const { message, kind, hint, stack, facts, issues, q, unloaded = false } = value;
  return (
    isText(message) &&
    [kind, hint, stack].every(isTextIfAny) &&
    (facts === undefined || isFields(facts)) &&
    (issues === undefined || (Array.isArray(issues) && issues.every(isIssue))) &&
    isNumberIfAny(q) &&
    typeof unloaded === "boolean"
  );
}

function isIssue(value: unknown): boolean {
  return isFields(value) && isText(value["path"]) && isText(value["message"]);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
