import { createServer, type RequestListener, type Server } from "node:http";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { EngineClient } from "../../../../../src/sandbox/runtimes/docker/engine-client.ts";
import { openOwnership } from "../../../../../src/sandbox/runtimes/docker/ownership.ts";
import type { CleanupHost } from "../../../../../src/sandbox/runtimes/docker/reap.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { temporaryFolder } from "../../../config/temporary-folder.ts";

export interface FakeEngine {
  readonly host: CleanupHost;
  readonly server: Server;
  /** What it was asked, as in `GET /_ping`. */
  readonly asked: string[];
}

/** An engine that answers as it is told, and what a server knows of its containers. */
export async function fakeEngine(answer: RequestListener): Promise<FakeEngine> {
  const folder = temporaryFolder();
  const path = join(folder, "engine.sock");
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = {
    engine: new EngineClient({ kind: "socket", path }),
    ownership: await openOwnership(folder, "server1"),
    logger: createLogger({ level: "error", format: "json", write: () => undefined }),
    own: new Set<string>(),
    making: new Set<Promise<unknown>>(),
    doubt: { isThere: false },
    leftovers: new Set<string>(),
    leftVolumes: new Set<string>(),
    prepared: new Set<string>(),
  };
  return { host, server, asked };
}
