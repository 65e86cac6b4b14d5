import { OwlError, toPathlessError } from "../errors/owl-error.ts";
import type { Runtime, RuntimeProblem } from "./runtimes/runtime.ts";
import type { Logger } from "../telemetry/logger.ts";
import {
  assertIsolated,
  type OpenRuntime,
  type RuntimeName,
  type RuntimeParts,
  runtimeOfTemplate,
  templatesToTry,
} from "./open-runtime.ts";
import { setTimeout as delay } from "node:timers/promises";

/** In the order of `auto`. */
export const RUNTIMES: readonly RuntimeName[] = ["bubblewrap", "docker", "microsandbox"];
const FIRST_PAUSE_MS = 3000;
const MAX_PAUSE_MS = 30_000;
/** A server that stops waits no longer than this for a runtime that is still opening. */
const CLOSE_TIMEOUT_MS = 10_000;

interface ChosenRuntimes {
  /** For templates that configure none. */
  readonly usual: Runtime;
  readonly byTemplate: ReadonlyMap<string, Runtime>;
  /** Opens the runtimes of single templates in the background. Otherwise their first sandboxes open them. */
  openAhead(): void;
  close(): Promise<void>;
}

/** Runtimes that `auto` does not try again: their failure is not retryable before the next start of the server. */
export type FailedRuntimes = Map<RuntimeName, OwlError>;

/** Opens and probes the configured runtimes. When it rejects, no runtime is left open. */
export async function chooseRuntimes(
  parts: RuntimeParts,
  open: OpenRuntime,
  failedRuntimes: FailedRuntimes = new Map(),
): Promise<ChosenRuntimes> {
  const { runtime, templates } = parts.config.sandbox;
  const usual =
    runtime === "auto"
      ? await openFirst(parts, open, failedRuntimes)
      : await openNamed({ ...parts, name: runtime }, open);
  const byName = new Map<RuntimeName, Runtime>([[usual.name, usual]]);
  const byTemplate = new Map<string, Runtime>();
  for (const [template, own] of Object.entries(templates)) {
    const name = runtimeOfTemplate(own, usual.name);
    if (name === "auto") continue;
    const opening = { ...parts, name, usual: usual.name };
    const found = byName.get(name) ?? new LazyRuntime(name, (signal) => openNamed({ ...opening, signal }, open));
    byName.set(name, found);
    byTemplate.set(template, found);
  }
  const openAhead = (): void => {
    for (const each of byName.values()) if (each instanceof LazyRuntime) each.openAhead();
  };
  const close = async (): Promise<void> => {
    await Promise.all([...byName.values()].map(async (each) => await each.close()));
  };
  return { usual, byTemplate, openAhead, close };
}

interface Opening extends RuntimeParts {
  readonly name: RuntimeName;
  readonly usual?: RuntimeName;
  /** Aborts the opening. */
  readonly signal?: AbortSignal;
}

async function openNamed(opening: Opening, open: OpenRuntime): Promise<Runtime> {
  return await openIsolated({ ...opening, isAsked: true }, open).catch((thrown: unknown) => {
    throw toPathlessError(thrown, "sandbox_unavailable");
  });
}

async function openFirst(parts: RuntimeParts, open: OpenRuntime, failedRuntimes: FailedRuntimes): Promise<Runtime> {
  const failures: OwlError[] = [];
  for (const name of RUNTIMES) {
    const known = failedRuntimes.get(name);
    if (known !== undefined) failures.push(known);
    else {
      try {
        return await openIsolated({ ...parts, name, isAsked: false }, open);
      } catch (thrown) {
        const error = toPathlessError(thrown, "sandbox_unavailable");
        if (!error.retryable) failedRuntimes.set(name, error);
        failures.push(error);
      }
    }
  }
  throw allFailed(failures);
}

function allFailed([first, ...others]: readonly OwlError[]): OwlError {
  if (first === undefined) return new OwlError("internal", "there is no runtime to try");
  // Runtimes that are not installed are not part of the message.
  const reported = others.filter(({ facts }) => !["engine_down", "package_missing"].includes(String(facts["reason"])));
  const message = [first, ...reported].map((each) => each.message).join("; ");
  const hint = [first, ...reported].map((each) => each.hint).join(" Or: ");
  // One retryable failure makes the whole retryable.
  const retryable = [first, ...others].some((each) => each.retryable);
  return new OwlError("sandbox_unavailable", message, { hint, retryable, facts: first.facts, cause: first });
}

/** A failure is logged and does not stop the start: the next start tries again. */
async function reapLogged(runtime: Runtime, logger: Logger): Promise<void> {
  try {
    const { removed } = await runtime.reap();
    if (removed.length > 0) logger.info("removed what a dead server left", { removed: removed.length });
  } catch (error) {
    logger.error("what a dead server left could not be removed; the next start tries again", { error });
  }
}

async function openIsolated(opening: Opening & { readonly isAsked: boolean }, open: OpenRuntime): Promise<Runtime> {
  const { config, logger, signal } = opening;
  const runtime = await open(opening);
  try {
    signal?.throwIfAborted();
    await reapLogged(runtime, logger);
    const templates = templatesToTry(opening);
    await assertIsolated(runtime, { limits: config.sandbox.limits, logger, signal, templates });
    return runtime;
  } catch (error) {
    await runtime.close();
    throw error;
  }
}

/** The runtime of single templates, opened by `openAhead` or the first sandbox, and again after a failure. */
class LazyRuntime implements Runtime {
  readonly name: Runtime["name"];
  readonly #open: (signal: AbortSignal) => Promise<Runtime>;
  readonly #closing = new AbortController();
  #opened: Promise<Runtime> | undefined;
  #running: Runtime | undefined;
  #failure: OwlError | undefined;
  #retry: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(name: Runtime["name"], open: (signal: AbortSignal) => Promise<Runtime>) {
    this.name = name;
    this.#open = open;
  }

  /** Known as soon as an instance has been started. */
  get maxWaitMs(): number | undefined {
    return this.#running?.maxWaitMs;
  }

  /** Opens it in the background. This also removes what dead servers left, and shows a failure before the first sandbox. */
  openAhead(): void {
    this.#runtime().catch(() => {
      if (this.#failure?.retryable !== true || this.#closing.signal.aborted) return;
      this.#retry = setTimeout(() => this.openAhead(), this.#pauseMs).unref();
      this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    });
  }

  async probe(...args: Parameters<Runtime["probe"]>): ReturnType<Runtime["probe"]> {
    return await (await this.#runtime()).probe(...args);
  }

  async start(...args: Parameters<Runtime["start"]>): ReturnType<Runtime["start"]> {
    return await (await this.#runtime()).start(...args);
  }

  async discard(folder: string): Promise<boolean> {
    return (await (await this.#ifOpen())?.discard(folder)) ?? true;
  }

  left(): number {
    return this.#running?.left?.() ?? 0;
  }

  async reap(): ReturnType<Runtime["reap"]> {
    return await (await this.#runtime()).reap();
  }

  problem(): RuntimeProblem | undefined {
    if (this.#running !== undefined) return this.#running.problem?.();
    return this.#failure && { error: this.#failure };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#retry);
    const late = delay(CLOSE_TIMEOUT_MS, undefined, { ref: false });
    await (await Promise.race([this.#ifOpen(), late]))?.close();
  }

  async #runtime(): Promise<Runtime> {
    this.#opened ??= this.#open(this.#closing.signal);
    try {
      this.#running = await this.#opened;
      return this.#running;
    } catch (error) {
      this.#opened = undefined;
      this.#failure = toPathlessError(error, "sandbox_unavailable");
      throw error;
    }
  }

  async #ifOpen(): Promise<Runtime | undefined> {
    return await this.#opened?.catch(() => undefined);
  }
}
