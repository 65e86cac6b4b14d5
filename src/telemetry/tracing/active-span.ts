import { AsyncLocalStorage } from "node:async_hooks";
import { isOwlError } from "../../errors/owl-error.ts";
import type { Span, SpanOptions } from "./span.ts";

/**
 * Which span the work at hand belongs to. It travels with the work, so that no layer passes it on. As long as nobody
 * traces, the storage is off, and asking it costs a look at one field.
 */
const storage = new AsyncLocalStorage<Span | undefined>();

export function activeSpan(): Span | undefined {
  return storage.getStore();
}

export function runInSpan<T>(span: Span | undefined, run: () => T): T {
  return storage.run(span, run);
}

/** Runs work in a span of its own, where there is a trace; otherwise it just runs. */
export async function traced<T>(options: SpanOptions, run: (span: Span | undefined) => Promise<T>): Promise<T> {
  const parent = storage.getStore();
  return parent === undefined ? run(undefined) : runAndEnd(parent.child(options), run);
}

/** The span ends with the work. */
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

/** Work that outlives its cause, and is nobody's in particular. */
export function untraced<T>(run: () => T): T {
  return storage.getStore() === undefined ? run() : storage.run(undefined, run);
}

/** The kind and never the message. */
export function errorTypeOf(error: unknown): string {
  if (isOwlError(error)) return error.kind;
  return error instanceof Error ? error.name.slice(0, 64) : "unknown";
}
