import type { CallContext } from "../../capability/context.ts";
import type { CallStyle } from "../handler-description.ts";

interface FunctionCall {
  readonly call: CallStyle;
  /** JSON pointers of fields that are a Date in the handler. */
  readonly dates: readonly string[];
}

/** Calls a plain function with the tool's input as its arguments. Values that a generator yields are sent as progress. */
export function callFunction(
  target: (...args: readonly unknown[]) => unknown,
  { call, dates }: FunctionCall,
  { input, context }: { readonly input: Readonly<Record<string, unknown>>; readonly context: CallContext },
): unknown {
  for (const pointer of dates) revive(input, pointer.split("/").slice(1).map(unescapePointer));
  const output = target(...toArguments(call, input, context));
  if (isAsyncIterator(output)) return drive(output, context);
  if (isIterator(output)) return drive(output, context);
  return output;
}

function toArguments(
  { style, parameters, rest = false, context: contextAt }: CallStyle,
  input: Readonly<Record<string, unknown>>,
  context: CallContext,
): unknown[] {
  const args: unknown[] = style === "object" ? [input] : parameters.map((name) => input[name]);
  if (rest) args.push(...toArray(args.pop()));
  if (contextAt !== undefined) {
    while (args.length < contextAt) args.push(undefined);
    args.splice(contextAt, 0, context);
  }
  return args;
}

function toArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Replaces ISO text by a Date at the pointer. A missing or other value is left unchanged. */
function revive(value: unknown, [key, ...rest]: readonly string[]): void {
  if (key === undefined || typeof value !== "object" || value === null) return;
  const holder = value;
  const keys = key === "*" ? Object.keys(holder) : [key];
  for (const name of keys) {
    const child: unknown = Reflect.get(holder, name);
    if (rest.length > 0) revive(child, rest);
    else if (typeof child === "string") Reflect.set(holder, name, new Date(child));
  }
}

function unescapePointer(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

async function drive(iterator: Iterator<unknown> | AsyncIterator<unknown>, context: CallContext): Promise<unknown> {
  let steps = 0;
  for (;;) {
    const step = await iterator.next();
    if (step.done === true) return step.value;
    steps += 1;
    report(step.value, steps, context);
    // Lets the other calls of this worker run while a generator never awaits.
    await new Promise((resolve) => setImmediate(resolve));
    if (context.signal.aborted) {
      await iterator.return?.();
      context.signal.throwIfAborted();
    }
  }
}

/** A number, a text, or `{done, total, message}`. */
function report(value: unknown, steps: number, context: CallContext): void {
  if (typeof value === "number") return context.progress(value);
  if (typeof value === "string") return context.progress(steps, { message: value });
  if (typeof value !== "object" || value === null) return context.progress(steps);
  const { done, total, message }: { done?: unknown; total?: unknown; message?: unknown } = value;
  context.progress(typeof done === "number" ? done : steps, {
    ...(typeof total === "number" && { total }),
    ...(typeof message === "string" && { message }),
  });
}

function isIterator(value: unknown): value is Iterator<unknown> {
  return hasNext(value) && Symbol.iterator in value;
}

function isAsyncIterator(value: unknown): value is AsyncIterator<unknown> {
  return hasNext(value) && Symbol.asyncIterator in value;
}

function hasNext(value: unknown): value is object {
  return typeof value === "object" && value !== null && "next" in value && typeof value.next === "function";
}
