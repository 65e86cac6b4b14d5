import { isRecord } from "../../platform/records.ts";
import { FileBroken, fromWireError, SchemaRefused, toWireError } from "./wire-error.ts";
import { callFunction } from "./call-function.ts";
import type { CallRegisters } from "./call-registers.ts";
import { isCheckedHere, LoadedFile } from "./loaded-file.ts";
import { WorkerContext } from "./worker-context.ts";
import { wholeResult } from "../../capability/content.ts";
import type { CompiledSchema, SchemaVerdict } from "../../capability/schema.ts";
import { NumberedSlots } from "../../platform/slots.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { FromWorker, Target, ToWorker } from "./worker-protocol.ts";

type CallMessage = Extract<ToWorker, { t: "call" }>;

interface HostOptions {
  readonly importFile: (file: string) => Promise<unknown>;
  /** Receives texts to import instead of files. */
  readonly keep?: (texts: Readonly<Record<string, string>>) => void;
  readonly send: (message: FromWorker) => void;
  readonly registers?: CallRegisters | undefined;
}

const NO_CONTEXT = { principal: { id: "", scopes: [], claims: {} }, traceId: "", protocolVersion: "" };

/** The worker's side of the protocol: imports files when they are first needed, and calls what they export. */
export class WorkerHost {
  readonly #options: HostOptions;
  readonly #targets = new Map<number, Target>();
  readonly #files = new Map<string, LoadedFile>();
  readonly #loading = new Map<string, Promise<LoadedFile>>();
  readonly #calls = new NumberedSlots<WorkerContext>();

  constructor(options: HostOptions) {
    this.#options = options;
  }

  receive(message: ToWorker): void {
    if (isRequest(message) && this.#options.registers?.start(message.id) === false) {
      return this.#options.send({ t: "skipped", id: message.id });
    }
    this.#handle(message);
  }

  #handle(message: ToWorker): void {
    switch (message.t) {
      case "call":
        return this.#call(message);
      case "target":
        this.#targets.set(message.n, message.target);
        return;
      case "sources":
        return this.#options.keep?.(message.texts);
      case "describe":
        return this.#settle(
          message.id,
          this.#load(message.file).then((file) => file.report()),
        );
      case "watch":
        return this.#settle(message.id, this.#watch(message.n));
      case "cancel":
        return this.#calls.get(message.id)?.cancel(fromWireError(message.error));
      case "answer":
        return this.#calls.get(message.id)?.answer(message.q, message.value, message.error);
      case "ping":
        return this.#options.send({ t: "pong" });
    }
  }

  #call(message: CallMessage): void {
    const { id, n, ctx } = message;
    const context = new WorkerContext(id, ctx ?? NO_CONTEXT, this.#options.send);
    this.#calls.set(id, context);
    try {
      const target = this.#targets.get(n);
      if (target === undefined) throw new OwlError("internal", "the server did not announce the target");
      const file = this.#files.get(target.file);
      const output =
        file === undefined
          ? this.#loadForCall(target.file).then((loaded) => perform({ file: loaded, target, message, context }))
          : perform({ file, target, message, context });
      if (isThenable(output)) this.#settle(id, output);
      else this.#done(id, output);
    } catch (thrown) {
      this.#fail(id, thrown);
    }
  }

  #settle(id: number, output: PromiseLike<unknown>): void {
    output.then(
      (value) => this.#done(id, value),
      (thrown: unknown) => this.#fail(id, thrown),
    );
  }

  #done(id: number, value: unknown): void {
    const measured = this.#end(id);
    try {
      this.#options.send(
        value instanceof Uint8Array
          ? { t: "done", id, bytes: Buffer.from(value).toString("base64"), ...measured }
          : { t: "done", id, value, ...measured },
      );
    } catch {
      this.#fail(id, new OwlError("execution_error", "the handler returned a value that JSON cannot express"));
    }
  }

  #fail(id: number, thrown: unknown): void {
    const measured = this.#end(id);
    this.#options.send({ t: "fail", id, error: toWireError(thrown), ...measured });
  }

  #end(id: number): { readonly ms?: number } | undefined {
    const context = this.#calls.delete(id);
    context?.settle();
    return context?.measured;
  }

  #load(name: string): Promise<LoadedFile> {
    let loading = this.#loading.get(name);
    if (loading === undefined) {
      loading = this.#options.importFile(name).then((module) => new LoadedFile(name, module));
      this.#loading.set(name, loading);
      loading.then(
        (file) => this.#files.set(name, file),
        () => this.#loading.delete(name),
      );
    }
    return loading;
  }

  async #loadForCall(name: string): Promise<LoadedFile> {
    try {
      return await this.#load(name);
    } catch (thrown) {
      throw new FileBroken(thrown);
    }
  }

  async #watch(n: number): Promise<void> {
    const target = this.#targets.get(n);
    if (target?.kind !== "definition") return;
    const file = await this.#load(target.file);
    const { signal } = new AbortController();
    file.resources.get(target.name)?.watch?.(() => this.#options.send({ t: "changed", n }), signal);
  }
}

function isRequest(message: ToWorker): message is Extract<ToWorker, { t: "call" | "describe" | "watch" }> {
  return message.t === "call" || message.t === "describe" || message.t === "watch";
}

interface Performance {
  readonly file: LoadedFile;
  readonly target: Target;
  readonly message: CallMessage;
  readonly context: WorkerContext;
}

function perform({ file, target, message: { op, input }, context }: Performance): unknown {
  if (target.kind === "function") {
    const exported = file.exports[target.exportName];
    if (!isFunction(exported)) throw gone(target.exportName);
    return callFunction(exported, target, { input: toRecord(input), context });
  }
  if (op === "complete") return complete(file, target, { input: toRecord(input), context });
  switch (target.of) {
    case "handler":
      return runHandler(file, target.name, { input, context });
    case "resource": {
      const { uri, variables } = toRecord(input);
      const resource = file.resources.get(target.name);
      if (resource === undefined) throw gone(target.name);
      return resource.read(String(uri), toTexts(variables), context);
    }
    case "prompt": {
      const prompt = file.prompts.get(target.name);
      if (prompt === undefined) throw gone(target.name);
      const { definition, arguments: schema } = prompt;
      const check = isCheckedHere(definition.arguments) ? schema : undefined;
      return after(accepted(check, input, "input"), (value) => definition.run(value, context));
    }
  }
}

function runHandler(
  file: LoadedFile,
  name: string,
  { input, context }: { readonly input: unknown; readonly context: WorkerContext },
): unknown {
  const handler = file.handlers.get(name);
  if (handler === undefined) throw gone(name);
  const { definition, tool } = handler;
  const value = accepted(isCheckedHere(definition.input) ? tool.input : undefined, input, "input");
  const output = after(value, (checked) => tool.run(checked, context));
  return isCheckedHere(definition.output) ? after(output, (made) => checkedOutput(tool.output, made)) : output;
}

function checkedOutput(schema: CompiledSchema | undefined, output: unknown): unknown {
  const whole = wholeResult(output);
  if (whole === undefined) return accepted(schema, output, "output");
  if (whole.isError === true) return whole;
  return after(accepted(schema, whole.structuredContent, "output"), (structuredContent) => ({
    ...whole,
    structuredContent,
  }));
}

/** The checked value; synchronous for most schemas. */
function accepted(schema: CompiledSchema | undefined, value: unknown, side: "input" | "output"): unknown {
  if (schema === undefined) return value;
  return after(schema.check(value), (verdict: SchemaVerdict) => {
    if (verdict.ok) return verdict.value;
    throw new SchemaRefused(side, verdict.issues);
  });
}

function after<T>(value: T | PromiseLike<T>, next: (value: T) => unknown): unknown {
  // oxlint-disable-next-line promise/no-callback-in-promise -- `next` is the rest of this very work
  return isThenable(value) ? value.then((settled) => next(settled)) : next(value);
}

/** Also for thenables that are not promises, such as query builders. */
function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function complete(
  file: LoadedFile,
  target: Target,
  { input, context }: { readonly input: Readonly<Record<string, unknown>>; readonly context: WorkerContext },
): unknown {
  const { argument, value, others } = input;
  if (target.kind !== "definition") throw gone(target.exportName);
  const completers = file.completers(target.of, target.name);
  const name = String(argument);
  const completer = completers !== undefined && Object.hasOwn(completers, name) ? completers[name] : undefined;
  return completer?.(String(value), toTexts(others), context) ?? [];
}

function gone(name: string): OwlError {
  return new OwlError("execution_error", `"${name}" is no longer in its file`, { retryable: true });
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function toTexts(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(toRecord(value)).map(([name, text]) => [name, String(text)]));
}

function isFunction(value: unknown): value is (...args: readonly unknown[]) => unknown {
  return typeof value === "function";
}
