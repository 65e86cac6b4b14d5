import { AsyncLocalStorage } from "node:async_hooks";
import { isOwlError } from "../../errors/owl-error.ts";
import type { Span, SpanOptions } from "./span.ts";

/**
 * The span of the current asynchronous context, so that callers need not pass it as an argument. Without tracing the
 * storage is disabled, and reading it costs one field access.
 */
const storage = new AsyncLocalStorage<Span | undefined>();

export function activeSpan(): Span | undefined {
  return storage.getStore();
}

export function runInSpan<T>(span: Span | undefined, run: () => T): T {
  return storage.run(span, run);
}

/** Runs `run` in a child span when there is a trace. Otherwise just runs it. */
export async function traced<T>(options: SpanOptions, run: (span: Span | undefined) => Promise<T>): Promise<T> {
  const parent = storage.getStore();
  return parent === undefined ? run(undefined) : runAndEnd(parent.child(options), run);
}

/** Runs `run` in the span and ends the span with its result. */
export async function runAndEnd<T>(span: Span, run: (span: Span) => Promise<T>): Promise<T> {
  try {
    const value = await storage.run(span, () => run(span));
    span.end();
    return value;
  } catch (error) {
    span.end(errorTypeOf(error));
    throw error;
  }
}

/** Runs work that outlives the call that started it, outside of any trace. */
export function untraced<T>(run: () => T): T {
  return storage.getStore() === undefined ? run() : storage.run(undefined, run);
}

/** The kind of the error, never its message. */
export function errorTypeOf(error: unknown): string {
  if (isOwlError(error)) return error.kind;
  return error instanceof Error ? error.name.slice(0, 64) : "unknown";
}
