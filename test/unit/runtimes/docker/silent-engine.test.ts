import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createDockerRuntime } from "../../../../src/runtimes/docker/docker-runtime.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";

test("an engine that takes calls and never answers is given up when its time is over", async () => {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-engine-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "engine.sock");
  const calls: Socket[] = [];
  const engine = createServer((socket) => calls.push(socket.on("error", () => undefined)));
  await new Promise<void>((resolve) => engine.listen(path, resolve));
  onTestFinished(() => {
    for (const call of calls) call.destroy();
    engine.close();
  });
  const opened = createDockerRuntime({
    dataFolder: join(folder, "data"),
    logger: createLogger({ level: "error", format: "json", write: () => undefined }),
    guestFolder: folder,
    serverId: "server1",
    host: `unix://${path}`,
    certFolder: "",
    ociRuntime: "",
    imageOf: () => "box:1",
    contactTimeoutMs: 100,
  });
  await expect(opened).rejects.toMatchObject({
    kind: "sandbox_unavailable",
    message: `the container engine at ${path} cannot be reached: it does not answer`,
    facts: { reason: "engine_down" },
  });
  expect(calls).toHaveLength(1);
  expect(readdirSync(folder)).toEqual(["engine.sock"]);
});
