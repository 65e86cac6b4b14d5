import { join } from "node:path";
import type { Config } from "../config/schema.ts";
import { type BuildResult, buildTemplate, type TemplateRecipe } from "../sandbox/build-template.ts";
import type { OnOutput } from "../sandbox/guest-methods.ts";
import { InstanceStarter } from "../sandbox/instance-starter.ts";
import { Templates } from "../sandbox/templates.ts";
import type { Logger } from "../telemetry/logger.ts";
import { chooseRuntimes } from "./choose-runtime.ts";
import { openEgress } from "./open-egress.ts";
import { openRuntime } from "./open-runtime.ts";

export interface WorkshopOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly recipe: TemplateRecipe;
  readonly onOutput: OnOutput;
  readonly signal: AbortSignal;
}

/** Opens what building needs, without a server, and closes it again. */
export async function buildInWorkshop(options: WorkshopOptions): Promise<BuildResult> {
  const { logger, recipe, onOutput, signal } = options;
  const { sandbox, guest } = options.config;
  const config = {
    ...options.config,
    sandbox: { ...sandbox, network: { ...sandbox.network, allow: recipe.allow, templates: {} } },
  };
  const templates = new Templates();
  const runtimes = await chooseRuntimes({ config, logger, templates }, openRuntime);
  try {
    const egress = await openEgress({ config, logger });
    try {
      const starter = new InstanceStarter({
        runtime: runtimes.usual,
        logger,
        templates,
        workspacePath: sandbox.workspace,
        maxFrameBytes: guest.maxFrameBytes,
        folder: join(sandbox.root, "sandboxes"),
        openEgress: (instanceId, allow) => egress.open(instanceId, allow),
      });
      const { root: dataFolder, workspace: workspacePath } = sandbox;
      return await buildTemplate({ starter, dataFolder, workspacePath, recipe, onOutput, signal });
    } finally {
      await egress.close();
    }
  } finally {
    await runtimes.close();
  }
}
