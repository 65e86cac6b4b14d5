import { OwlError, toPathlessError } from "../errors/owl-error.ts";
import type { Runtime } from "./runtimes/runtime.ts";
import type { Logger } from "../telemetry/logger.ts";
import { LateRuntime } from "./late-runtime.ts";
import {
  assertIsolated,
  type OpenRuntime,
  type RuntimeName,
  type RuntimeParts,
  runtimeOfTemplate,
  templatesToTry,
} from "./open-runtime.ts";

/** In the order in which `auto` tries them. */
export const RUNTIMES: readonly RuntimeName[] = ["bubblewrap", "docker", "microsandbox"];

export interface ChosenRuntimes {
  /** For every template that names none of its own. */
  readonly usual: Runtime;
  readonly byTemplate: ReadonlyMap<string, Runtime>;
  /** Begins to open those that only templates use; without, their first sandboxes do. */
  openAhead(): void;
  close(): Promise<void>;
}

/** What `auto` need not try again: what is wrong with the machine stays wrong until the server starts again. */
export type Hopeless = Map<RuntimeName, OwlError>;

/** Opens and probes what the configuration names. What cannot be opened is said, and nothing stays open. */
export async function chooseRuntimes(
  parts: RuntimeParts,
  open: OpenRuntime,
  hopeless: Hopeless = new Map(),
): Promise<ChosenRuntimes> {
  const { runtime, templates } = parts.config.sandbox;
  const usual =
    runtime === "auto" ? await openFirst(parts, open, hopeless) : await openNamed({ ...parts, name: runtime }, open);
  const byName = new Map<RuntimeName, Runtime>([[usual.name, usual]]);
  const byTemplate = new Map<string, Runtime>();
  for (const [template, own] of Object.entries(templates)) {
    const name = runtimeOfTemplate(own, usual.name);
    if (name === "auto") continue;
    const opening = { ...parts, name, usual: usual.name };
    const found = byName.get(name) ?? new LateRuntime(name, (signal) => openNamed({ ...opening, signal }, open));
    byName.set(name, found);
    byTemplate.set(template, found);
  }
  const openAhead = (): void => {
    for (const each of byName.values()) if (each instanceof LateRuntime) each.openAhead();
  };
  const close = async (): Promise<void> => {
    await Promise.all([...byName.values()].map(async (each) => await each.close()));
  };
  return { usual, byTemplate, openAhead, close };
}

interface Opening extends RuntimeParts {
  readonly name: RuntimeName;
  readonly usual?: RuntimeName;
  /** Ends it before it is open. */
  readonly signal?: AbortSignal;
}

async function openNamed(opening: Opening, open: OpenRuntime): Promise<Runtime> {
  return await openIsolated({ ...opening, isAsked: true }, open).catch((thrown: unknown) => {
    throw toPathlessError(thrown, "sandbox_unavailable");
  });
}

async function openFirst(parts: RuntimeParts, open: OpenRuntime, hopeless: Hopeless): Promise<Runtime> {
  const failures: OwlError[] = [];
  for (const name of RUNTIMES) {
    const known = hopeless.get(name);
    if (known !== undefined) failures.push(known);
    else {
      try {
        return await openIsolated({ ...parts, name, isAsked: false }, open);
      } catch (thrown) {
        const error = toPathlessError(thrown, "sandbox_unavailable");
        if (!error.retryable) hopeless.set(name, error);
        failures.push(error);
      }
    }
  }
  throw allFailed(failures);
}

function allFailed([first, ...others]: readonly OwlError[]): OwlError {
  if (first === undefined) return new OwlError("internal", "there is no runtime to try");
  // Where no engine runs or no package is installed, nobody wants to hear of one.
  const told = others.filter(({ facts }) => !["engine_down", "package_missing"].includes(String(facts["reason"])));
  const message = [first, ...told].map((each) => each.message).join("; ");
  const hint = [first, ...told].map((each) => each.hint).join(" Or: ");
  // One that may come back is enough to try again.
  const retryable = [first, ...others].some((each) => each.retryable);
  return new OwlError("sandbox_unavailable", message, { hint, retryable, facts: first.facts, cause: first });
}

/** What cannot be removed is no reason not to start: the next start tries again. */
async function reapQuietly(runtime: Runtime, logger: Logger): Promise<void> {
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
    await reapQuietly(runtime, logger);
    const templates = templatesToTry(opening);
    await assertIsolated(runtime, { limits: config.sandbox.limits, logger, signal, templates });
    return runtime;
  } catch (error) {
    await runtime.close();
    throw error;
  }
}
