import { fileURLToPath } from "node:url";
import type { ProcessCommand } from "./launch-process.ts";

/** How a Node worker is started. From the sources, as tests do, it needs a compiler in front. */
export function nodeWorkerCommand(options: {
  readonly cacheFolder: string;
  readonly env: ProcessCommand["env"];
}): ProcessCommand {
  const isSource = import.meta.url.endsWith(".ts");
  const program = fileURLToPath(new URL(`./node-worker.${isSource ? "ts" : "js"}`, import.meta.url));
  const loader = isSource ? ["--import", import.meta.resolve("tsx")] : [];
  return {
    program: process.execPath,
    args: [...loader, "--enable-source-maps", program, "fd", options.cacheFolder],
    env: options.env,
  };
}
