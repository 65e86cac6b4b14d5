import { join } from "node:path";
import { Changes } from "../capabilities/changes.ts";
import { Registry } from "../capabilities/registry.ts";
import type { Config } from "../config/schema.ts";
import { loadHandlers } from "../handlers/load-handlers.ts";
import { Pipeline } from "../pipeline/pipeline.ts";
import { Mcp } from "../protocol/mcp.ts";
import type { Logger } from "../telemetry/logger.ts";
import { PACKAGE_VERSION } from "./package-version.ts";

export interface Assembly {
  readonly mcp: Mcp;
  close(): Promise<void>;
}

/** Wires everything behind the transports. What is started here is stopped by `close`, in reverse. */
export async function assemble(config: Config, logger: Logger): Promise<Assembly> {
  const registry = new Registry();
  const changes = new Changes();
  const cacheFolder = join(config.sandbox.root, "cache", "handlers");
  const { problems } = await loadHandlers(registry, { paths: config.handlers.paths, cacheFolder });
  for (const { file, message, error } of problems)
    logger.error("handler file cannot be used", { file, reason: message, error });
  const pipeline = new Pipeline({
    registry,
    timeoutMs: config.tools.timeoutSeconds * 1000,
    progressAfterMs: config.tools.progressAfterSeconds * 1000,
    maxResultChars: config.tools.maxResultChars,
  });
  const serverInfo = { name: "owlclaw", title: "OwlClaw", version: PACKAGE_VERSION };
  const mcp = new Mcp({ pipeline, changes, logger, serverInfo, withStack: config.mode === "development" });
  const watching = new AbortController();
  for (const { definition } of registry.resources()) {
    try {
      definition.watch?.(() => changes.resourceUpdated(definition.uri), watching.signal);
    } catch (error) {
      logger.error("resource cannot be watched", { uri: definition.uri, error });
    }
  }
  return {
    mcp,
    async close() {
      watching.abort();
      mcp.close();
    },
  };
}
