import { join } from "node:path";
import type { Changes, Registry } from "../capability/registry.ts";
import type { CallContext, HandlerSandbox } from "../capability/context.ts";
import type { PlannedVolume } from "../config/plan-volumes.ts";
import type { Config } from "../config/schema.ts";
import { workerEnvironment } from "../config/environment.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { HandlerLanguage } from "../handlers/generation.ts";
import { HandlerLibrary } from "../handlers/handler-library.ts";
import { ReportCache } from "../handlers/report-cache.ts";
import {
  type LaunchWorker,
  launchProcess,
  type EarlyWorker,
  launchNodeWorker,
} from "../handlers/workers/launch-process.ts";
import { refuseWritableImports } from "../handlers/writable-imports.ts";
import type { UseSandbox } from "../handlers/workers/remote-call.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ToolServices } from "../tools/sandbox-tool.ts";
import type { SandboxLayer } from "./sandbox-layer.ts";

/** Handlers are trusted not to flood: this only keeps a mistake from filling the memory. */
const MAX_LINE_CHARS = 256 * 1024 * 1024;

export interface OpenHandlersOptions {
  readonly config: Config;
  readonly registry: Registry;
  readonly changes: Changes;
  readonly logger: Logger;
  /** Where there are sandboxes. */
  readonly layer?: SandboxLayer | undefined;
  /** Folders that sandboxes may write to. */
  readonly volumes?: readonly PlannedVolume[] | undefined;
  readonly earlyWorker?: EarlyWorker | undefined;
}

/** The operator's handlers, with the processes they run in. */
export function openHandlers(options: OpenHandlersOptions): HandlerLibrary {
  const { config, registry, changes, logger, layer, earlyWorker, volumes = [] } = options;
  const { paths, isolation, workers } = config.handlers;
  const cacheFolder = join(config.sandbox.root, "cache", "handlers");
  const node: LaunchWorker = async () => earlyWorker?.take() ?? launchNodeWorker(config);
  const env = workerEnvironment();
  const python: LaunchWorker = async () => {
    const { pythonWorkerCommand } = await import("../handlers/python/python-command.ts");
    return launchProcess(await pythonWorkerCommand({ python: config.handlers.python, env, cacheFolder }));
  };
  return new HandlerLibrary({
    registry,
    changes,
    logger,
    paths,
    cacheFolder,
    maxWorkers: workers,
    isPerClient: isolation === "sandbox",
    maxLineChars: isolation === "sandbox" ? config.guest.maxFrameBytes : MAX_LINE_CHARS,
    useSandbox: layer === undefined ? undefined : sandboxUser(layer.services),
    launch:
      isolation === "sandbox"
        ? { node: sandboxed("node", paths, layer), python: sandboxed("python", paths, layer) }
        : { node: isolation === "none" ? undefined : node, python },
    describeTypes: async (files) => {
      const { describeTypeScript } = await import("../handlers/typescript/describe-files.ts");
      return describeTypeScript({ files, cacheFolder });
    },
    // In the server's own process a file that is loaded later would stop everything meanwhile.
    cache: isolation === "none" ? undefined : new ReportCache(cacheFolder, surroundingsOf(config, env)),
    environment: env,
    refuse: refuseWritableImports(volumes),
  });
}

/** What decides which interpreter runs the files, and what it finds. */
function surroundingsOf({ handlers }: Config, env: ReturnType<typeof workerEnvironment>): readonly string[] {
  const { isolation, python } = handlers;
  const variables = ["PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NODE_PATH", "NODE_OPTIONS"];
  return [isolation, python, ...variables.map((name) => env[name] ?? "")];
}

function sandboxed(language: HandlerLanguage, paths: readonly string[], layer: SandboxLayer | undefined): LaunchWorker {
  return async () => {
    if (layer === undefined) {
      throw new OwlError("sandbox_unavailable", "handlers.isolation is sandbox, and sandbox.enabled is false", {
        hint: "Set sandbox.enabled to true, or handlers.isolation to worker.",
      });
    }
    const { launchInSandbox } = await import("../handlers/workers/launch-in-sandbox.ts");
    return launchInSandbox(language, { openProgram: layer.openProgram, paths });
  };
}

/** One sandbox for all that one call asks; who it belongs to is said by the call's context. */
function sandboxUser(services: ToolServices): UseSandbox {
  const opened = new WeakMap<CallContext, Promise<HandlerSandbox>>();
  const open = async (context: CallContext): Promise<HandlerSandbox> => {
    const { handlerSandbox } = await import("../tools/handler-sandbox.ts");
    return handlerSandbox(services, context);
  };
  return async (context, request) => {
    let sandbox = opened.get(context);
    if (sandbox === undefined) {
      sandbox = open(context);
      opened.set(context, sandbox);
    }
    const { useHandlerSandbox } = await import("../tools/handler-sandbox.ts");
    return useHandlerSandbox(await sandbox, request);
  };
}
