import { ERROR_KINDS, type ErrorKind, type ErrorKindFacts } from "./kinds.ts";

export interface OwlErrorOptions {
  /** Facts for `error.data`: the rule, the limit, the supported versions. Never a secret. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** What to do next, when it is more exact than the kind's own suggestion. */
  readonly hint?: string;
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

const BRAND: unique symbol = Symbol.for("owlclaw.error");

/** The error that all layers throw. The protocol layer decides its form on the wire, for each era. */
export class OwlError extends Error {
  readonly [BRAND] = true;
  readonly kind: ErrorKind;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly hint: string;
  readonly retryable: boolean;

  constructor(kind: ErrorKind, message: string, options: OwlErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    const defaults: ErrorKindFacts = ERROR_KINDS[kind];
    this.name = "OwlError";
    this.kind = kind;
    this.facts = options.facts ?? {};
    this.hint = options.hint ?? defaults.suggestion;
    this.retryable = options.retryable ?? defaults.retryable;
  }
}

/** Wraps any thrown value; an `OwlError` is returned as it is. */
export function toOwlError(thrown: unknown, kind: ErrorKind = "internal"): OwlError {
  if (isOwlError(thrown)) return thrown;
  return new OwlError(kind, messageOf(thrown), { cause: thrown });
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The same for errors that clients see: system errors lose their paths. */
export function toPathlessError(thrown: unknown, kind: ErrorKind): OwlError {
  return isOwlError(thrown) ? thrown : new OwlError(kind, reasonWithoutPath(thrown), { cause: thrown });
}

/**
 * The message of a thrown value for clients. Messages of system errors name a path of the machine, so it is left out.
 */
export function reasonWithoutPath(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (!("syscall" in thrown && "code" in thrown)) return thrown.message;
  // When a program could not be started, `syscall` contains its path too.
  return `${String(thrown.code)} (${String(thrown.syscall).split(" ", 1)[0]})`;
}

/** Handlers may have a separate copy of this package, so the brand decides, not the class. */
export function isOwlError(thrown: unknown): thrown is OwlError {
  return (
    thrown instanceof Error && BRAND in thrown && "kind" in thrown && Object.hasOwn(ERROR_KINDS, String(thrown.kind))
  );
}
