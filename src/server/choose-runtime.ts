import { OwlError, toOwlError } from "../errors/owl-error.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import { LateRuntime } from "./late-runtime.ts";
import { assertIsolated, type OpenRuntime, type RuntimeName, type RuntimeParts } from "./open-runtime.ts";

/** In the order in which `auto` tries them. */
export const RUNTIMES: readonly RuntimeName[] = ["bubblewrap", "docker", "microsandbox"];

export interface ChosenRuntimes {
  /** For every template that names none of its own. */
  readonly usual: Runtime;
  readonly byTemplate: ReadonlyMap<string, Runtime>;
  close(): Promise<void>;
}

/** Opens and probes what the configuration names. What cannot be opened is said, and nothing stays open. */
export async function chooseRuntimes(parts: RuntimeParts, open: OpenRuntime): Promise<ChosenRuntimes> {
  const { runtime, templates } = parts.config.sandbox;
  const usual = await openFirst(parts, open, runtime);
  const byName = new Map<RuntimeName, Runtime>([[usual.name, usual]]);
  const byTemplate = new Map<string, Runtime>();
  for (const [template, own] of Object.entries(templates)) {
    const name =
      own.runtime ?? (own.image === undefined ? "auto" : usual.name === "microsandbox" ? usual.name : "docker");
    if (name === "auto") continue;
    const found = byName.get(name) ?? new LateRuntime(name, () => openFirst(parts, open, name));
    byName.set(name, found);
    byTemplate.set(template, found);
  }
  const close = async (): Promise<void> => {
    await Promise.all([...byName.values()].map(async (each) => await each.close()));
  };
  return { usual, byTemplate, close };
}

async function openFirst(parts: RuntimeParts, open: OpenRuntime, wish: RuntimeName | "auto"): Promise<Runtime> {
  const failures: OwlError[] = [];
  for (const name of wish === "auto" ? RUNTIMES : [wish]) {
    try {
      return await openIsolated({ ...parts, name, isAsked: wish !== "auto" }, open);
    } catch (thrown) {
      failures.push(toOwlError(thrown, "sandbox_unavailable"));
    }
  }
  const [first, ...others] = failures;
  // Where no engine runs or no package is installed, nobody wants to hear of one.
  const told = others.filter(({ facts }) => !["engine_down", "package_missing"].includes(String(facts["reason"])));
  if (first === undefined || told.length === 0) throw first ?? new OwlError("internal", "there is no runtime to try");
  const message = [first, ...told].map((each) => each.message).join("; ");
  const hint = [first, ...told].map((each) => each.hint).join(" Or: ");
  throw new OwlError("sandbox_unavailable", message, { hint, facts: first.facts, cause: first });
}

async function openIsolated(parts: Parameters<OpenRuntime>[0], open: OpenRuntime): Promise<Runtime> {
  const { config, logger } = parts;
  const runtime = await open(parts);
  try {
    const { removed } = await runtime.reap();
    if (removed.length > 0) logger.info("removed what a dead server left", { removed: removed.length });
    await assertIsolated(runtime, config.sandbox.limits, logger);
    return runtime;
  } catch (error) {
    await runtime.close();
    throw error;
  }
}
