import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { stringify } from "yaml";
import { ServerProcess } from "./server-process.ts";
import { MAIN } from "./targets.ts";

/** A server with sandboxes and a data folder of its own. */
export interface SandboxServer {
  readonly process: ServerProcess;
  readonly dataFolder: string;
  stop(): Promise<void>;
}

/** Everything at its default but the pool's size and the number of sandboxes, since all calls come from one caller. */
export async function startSandboxServer(
  poolSize: number,
  runtime: Readonly<Record<string, unknown>> = {},
  nodeFlags: readonly string[] = [],
): Promise<SandboxServer> {
  const root = await mkdtemp(path.join(tmpdir(), "owlclaw-bench-"));
  const config = path.join(root, "mcp-server.yaml");
  const dataFolder = path.join(root, "data");
  await writeFile(
    config,
    stringify({
      handlers: { paths: [path.join(import.meta.dirname, "handlers/*.ts")] },
      governance: { defaults: { callsPerMinute: 1_000_000_000, callsPerDay: 1_000_000_000, concurrency: 10_000 } },
      sandbox: {
        root: dataFolder,
        maxPerPrincipal: 200,
        maxTotal: 200,
        maxTotalMemoryMb: 1_000_000,
        pool: { size: poolSize },
        ...runtime,
      },
    }),
  );
  const command = ["mcp-server", "start", "--transport", "http", "--port", "0", "--config", config];
  const server = await ServerProcess.startHttp([...nodeFlags, MAIN, ...command], dataFolder);
  return {
    process: server,
    dataFolder,
    stop: async () => {
      await server.shutDown();
      await rm(root, { recursive: true, force: true });
    },
  };
}
