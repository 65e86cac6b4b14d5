import type { Changes, Registry } from "../capability/registry.ts";
import type { PlannedVolume } from "../config/plan-volumes.ts";
import type { Config } from "../config/schema.ts";
import type { HandlerProblem } from "../handlers/handler-description.ts";
import type { HandlerLibrary } from "../handlers/handler-library.ts";
import type { SandboxObserver } from "../sandbox/sandbox-observer.ts";
import type { SkillTexts } from "../capability/skill.ts";
import type { SkillProblem } from "../skills/scan-skills.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { EarlyWorker } from "../handlers/workers/launch-process.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import type { Tracer } from "../telemetry/tracing/tracer.ts";
import type { ServedSkills, ServeSkillsOptions, LinkedSkillsOptions } from "../skills/served-skills.ts";
import type { OpenHandlersOptions } from "./open-handlers.ts";
import type { OpenRuntime } from "../sandbox/open-runtime.ts";
import type { SandboxOwners } from "../cluster/sandbox-owners.ts";
import type { SandboxPart } from "./serve-sandboxes.ts";

export interface CapabilityOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly changes: Changes;
  readonly openRuntime?: OpenRuntime | undefined;
  /** `sandbox.volumes`, with what is protected in them. */
  readonly volumes?: readonly PlannedVolume[] | undefined;
  readonly withPool?: boolean;
  readonly sandboxOwners?: SandboxOwners | undefined;
  readonly earlyWorker?: EarlyWorker | undefined;
  readonly metrics?: Metrics | undefined;
  readonly tracer?: Tracer | undefined;
  readonly sandboxObserver?: SandboxObserver | undefined;
  /** Also those that are as they were at an earlier start. Default: no. */
  readonly loadsEveryHandler?: boolean;
}

/** Whatever the configuration asks for: sandboxes with their tools, skills, the users' own handlers. */
export interface Capabilities {
  readonly sandboxes: SandboxPart | undefined;
  readonly servesSkills: boolean;
  readonly skillTexts: SkillTexts | undefined;
  /** What keeps handlers from being served. */
  readonly handlerProblems: readonly HandlerProblem[];
  /** What authors of skills should change. */
  readonly skillProblems: readonly SkillProblem[];
  /** Starts what calls need, before the server listens. */
  start(): Promise<void>;
  /** Begins what is left for the time after that. */
  opened(): void;
  /** Calls back with the files of handlers that were loaded again, or are gone. */
  onHandlersChanged(listener: (files: readonly string[]) => void): void;
  /** Looks at skills and handlers again. */
  refresh(): Promise<void>;
  /** No more news for clients. */
  stopWatching(): Promise<void>;
  close(): Promise<void>;
}

/** What is not asked for is not loaded: a server need not wait for code that it does not use. */
export async function serveCapabilities(options: CapabilityOptions): Promise<Capabilities> {
  const { config, logger, registry, changes, earlyWorker, volumes, loadsEveryHandler = false } = options;
  const sandboxes = config.sandbox.enabled ? await addSandboxes(options) : undefined;
  const layer = sandboxes?.layer;
  const skills = config.skills.dir === "" ? undefined : await addSkills({ registry, changes, config, logger });
  const handlers =
    config.handlers.paths.length > 0
      ? await loadHandlers({ config, registry, changes, logger, layer, earlyWorker, volumes }, !loadsEveryHandler)
      : undefined;
  const skillTexts = skills === undefined ? undefined : await linkSkills({ config, registry, changes, logger, skills });
  const watching = new AbortController();
  watchResources(options, watching.signal);
  return {
    sandboxes,
    servesSkills: skills !== undefined,
    skillTexts,
    onHandlersChanged: (listener) => handlers?.onChanged(listener),
    get handlerProblems() {
      return handlers?.problems ?? [];
    },
    get skillProblems() {
      return skills?.problems ?? [];
    },
    start: async () => {
      await layer?.start();
      skills?.start();
      if (config.handlers.watch) handlers?.watch();
    },
    opened: () => handlers?.loadRest(),
    refresh: async () => {
      await skills?.refresh();
      await handlers?.refresh();
    },
    stopWatching: async () => {
      watching.abort();
      await skills?.close();
    },
    close: async () => {
      await handlers?.close();
      await layer?.close();
    },
  };
}

async function addSandboxes(options: CapabilityOptions): Promise<SandboxPart> {
  const { serveSandboxes } = await import("./serve-sandboxes.ts");
  return serveSandboxes(options.registry, options);
}

async function addSkills(
  options: Pick<ServeSkillsOptions, "registry" | "changes" | "logger"> & { config: Config },
): Promise<ServedSkills> {
  const { serveSkills } = await import("../skills/served-skills.ts");
  return serveSkills({ ...options, config: options.config.skills });
}

async function loadHandlers(options: OpenHandlersOptions, mayUseCache: boolean): Promise<HandlerLibrary> {
  const { openHandlers } = await import("./open-handlers.ts");
  const library = openHandlers(options);
  await library.load({ mayUseCache });
  return library;
}

async function linkSkills({
  config,
  ...options
}: Omit<LinkedSkillsOptions, "inline"> & { config: Config }): Promise<SkillTexts> {
  const { LinkedSkills } = await import("../skills/served-skills.ts");
  const linked = new LinkedSkills({ ...options, inline: config.handlers.inlineSkills });
  await linked.refresh();
  return linked;
}

function watchResources({ registry, changes, logger }: CapabilityOptions, signal: AbortSignal): void {
  for (const { definition } of registry.resources()) {
    try {
      definition.watch?.(() => changes.resourceUpdated(definition.uri), signal);
    } catch (error) {
      logger.error("resource cannot be watched", { uri: definition.uri, error });
    }
  }
}
