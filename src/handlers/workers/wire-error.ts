import { ERROR_KINDS, type ErrorKind } from "../../errors/kinds.ts";
import { isOwlError, OwlError, messageOf } from "../../errors/owl-error.ts";
import { withoutUndefined } from "../../platform/records.ts";
import type { WireError } from "./worker-protocol.ts";

/** Carries the number of the refused question, by which the server finds its original error. */
export class QuestionRefused extends Error {
  readonly q: number;

  constructor(q: number, message: string) {
    super(message);
    this.name = "QuestionRefused";
    this.q = q;
  }
}

/** The issues of a schema that is checked in the worker. */
export class SchemaRefused extends Error {
  readonly side: "input" | "output";
  readonly issues: readonly { readonly path: string; readonly message: string }[];

  constructor(side: "input" | "output", issues: SchemaRefused["issues"]) {
    super("the value does not fit its schema");
    this.name = "SchemaRefused";
    this.side = side;
    this.issues = issues;
  }
}

export class FileBroken extends OwlError {
  constructor(thrown: unknown) {
    const reason = messageOf(thrown);
    super("execution_error", `its file could not be loaded: ${reason}`, {
      hint: "The operator must repair the file, or what it needs when it is loaded. The server's log names it.",
    });
    if (thrown instanceof Error && thrown.stack !== undefined) this.stack = thrown.stack;
  }
}

export function toWireError(thrown: unknown): WireError {
  if (thrown instanceof QuestionRefused) return { message: thrown.message, q: thrown.q };
  if (thrown instanceof SchemaRefused) return { message: thrown.message, side: thrown.side, issues: thrown.issues };
  if (isOwlError(thrown)) {
    const { message, kind, hint, facts, retryable, stack } = thrown;
    const unloaded = thrown instanceof FileBroken ? true : undefined;
    return withoutUndefined({ message, kind, hint, facts, retryable, stack, unloaded });
  }
  return withoutUndefined({ message: messageOf(thrown), stack: thrown instanceof Error ? thrown.stack : undefined });
}

/** The stack is the worker's: it shows where the handler failed. */
export function fromWireError({ message, kind, hint, facts, retryable, stack }: WireError): OwlError {
  const options = withoutUndefined({ hint, facts, retryable });
  const error = new OwlError(isErrorKind(kind) ? kind : "execution_error", message, options);
  if (stack !== undefined) error.stack = stack;
  return error;
}

function isErrorKind(kind: string | undefined): kind is ErrorKind {
  return kind !== undefined && Object.hasOwn(ERROR_KINDS, kind);
}
