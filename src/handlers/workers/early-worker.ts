import { join } from "node:path";
import type { Config } from "../../config/schema.ts";
import { workerEnvironment } from "../../config/environment.ts";
import { launchProcess, type LaunchedWorker, nodeWorkerCommand } from "./launch-process.ts";

/** Starts the process for handlers while the server is still loading its own code: both take about as long. */
export class EarlyWorker {
  #worker: LaunchedWorker | undefined;

  constructor(config: Config) {
    if (needsNodeWorker(config)) this.#worker = launchNodeWorker(config);
  }

  /** For the first who asks. */
  take(): LaunchedWorker | undefined {
    const worker = this.#worker;
    this.#worker = undefined;
    return worker;
  }

  /** Ends it when nobody wanted it. */
  dismiss(): void {
    this.take()?.kill();
  }
}

export function launchNodeWorker({ sandbox }: Config): LaunchedWorker {
  const cacheFolder = join(sandbox.root, "cache", "handlers");
  return launchProcess(nodeWorkerCommand({ cacheFolder, env: workerEnvironment() }));
}

function needsNodeWorker({ handlers: { paths, isolation } }: Config): boolean {
  return isolation === "worker" && paths.some((path) => !path.endsWith(".py"));
}
