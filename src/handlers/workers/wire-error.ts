import { ERROR_KINDS, type ErrorKind } from "../../errors/kinds.ts";
import { isOwlError, OwlError } from "../../errors/owl-error.ts";
import type { WireError } from "./worker-protocol.ts";

/** A refused question keeps its number, so that the server recognises its own refusal when it comes back. */
export class QuestionRefused extends Error {
  readonly q: number;

  constructor(q: number, message: string) {
    super(message);
    this.name = "QuestionRefused";
    this.q = q;
  }
}

/** What the handler's own schema says against its input or its output. */
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

export function toWireError(thrown: unknown): WireError {
  if (thrown instanceof QuestionRefused) return { message: thrown.message, q: thrown.q };
  if (thrown instanceof SchemaRefused) return { message: thrown.message, side: thrown.side, issues: thrown.issues };
  if (isOwlError(thrown)) {
    const { message, kind, hint, facts, retryable, stack } = thrown;
    return { message, kind, hint, facts, retryable, ...(stack !== undefined && { stack }) };
  }
  if (thrown instanceof Error) {
    return { message: thrown.message, ...(thrown.stack !== undefined && { stack: thrown.stack }) };
  }
  return { message: String(thrown) };
}

/** What a worker threw, as the pipeline wants it. The stack is the worker's: it says where the handler failed. */
export function fromWireError({ message, kind, hint, facts, retryable, stack }: WireError): OwlError {
  const error = new OwlError(isErrorKind(kind) ? kind : "execution_error", message, {
    ...(hint !== undefined && { hint }),
    ...(facts !== undefined && { facts }),
    ...(retryable !== undefined && { retryable }),
  });
  if (stack !== undefined) error.stack = stack;
  return error;
}

function isErrorKind(kind: string | undefined): kind is ErrorKind {
  return kind !== undefined && Object.hasOwn(ERROR_KINDS, kind);
}
