import { join } from "node:path";
import type { Config } from "../../config/schema.ts";
import type { Runtime } from "../../sandbox/runtimes/runtime.ts";
import { InstanceStarter } from "../../sandbox/instance-starter.ts";
import type { Templates } from "../../sandbox/templates.ts";
import type { Logger } from "../../telemetry/logger.ts";

const START_TIMEOUT_MS = 60_000;

/** How long a sandbox takes from nothing to the guest's first answer, with the image and everything else at hand. */
export async function measureStart(parts: {
  readonly runtime: Runtime;
  readonly config: Config;
  readonly logger: Logger;
  readonly templates: Templates;
  /** Empty: that of no template in particular. */
  readonly template: string;
}): Promise<number> {
  const { runtime, config, logger, templates } = parts;
  const { root, workspace, flavor } = config.sandbox;
  const starter = new InstanceStarter({
    runtime,
    logger,
    templates,
    workspacePath: workspace,
    maxFrameBytes: config.guest.maxFrameBytes,
    folder: join(root, "sandboxes"),
    openEgress: () => Promise.reject(new Error("this sandbox has no network")),
  });
  const plan = starter.plan({
    template: parts.template || "python",
    flavor,
    env: {},
    volumes: [],
    network: { allow: [] },
  });
  const startedAt = performance.now();
  try {
    const instance = await starter.open(plan, AbortSignal.timeout(START_TIMEOUT_MS));
    const tookMs = performance.now() - startedAt;
    await instance.close();
    return tookMs;
  } finally {
    await starter.discard(plan);
  }
}
