import { Registry, Changes } from "../capability/registry.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { HandlerProblem } from "../handlers/handler-description.ts";
import { SILENT_LOGGER } from "../telemetry/logger.ts";
import { serveCapabilities } from "./serve-capabilities.ts";

/** Loads every handler as a server would, beside the tools that it would have, and says what keeps some from being served. */
export async function checkHandlers({
  config,
  volumes,
}: Pick<LoadedConfig, "config" | "volumes">): Promise<readonly HandlerProblem[]> {
  const capabilities = await serveCapabilities({
    config,
    volumes,
    logger: SILENT_LOGGER,
    registry: new Registry(),
    changes: new Changes(),
    withPool: false,
    loadsEveryHandler: true,
  });
  try {
    return capabilities.handlerProblems;
  } finally {
    await capabilities.stopWatching();
    await capabilities.close();
  }
}
