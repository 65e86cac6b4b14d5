import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createDockerRuntime } from "../../../../../src/sandbox/runtimes/docker/docker-runtime.ts";
import type { Runtime } from "../../../../../src/sandbox/runtimes/runtime.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";

interface Lab {
  readonly folder: string;
  readonly socket: string;
  /** What the engine was asked, in the order of its paths. */
  readonly asked: string[];
  open(): Promise<Runtime>;
}

async function lab(answer: RequestListener): Promise<Lab> {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-engine-"));
  const socket = join(folder, "engine.sock");
  const asked: string[] = [];
  const engine = createServer((request, response) => {
    asked.push(request.url ?? "");
    answer(request, response);
  });
  await new Promise<void>((resolve) => engine.listen(socket, resolve));
  onTestFinished(() => {
    engine.closeAllConnections();
    engine.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const open = (): Promise<Runtime> =>
    createDockerRuntime({
      dataFolder: join(folder, "data"),
      logger: createLogger({ level: "error", format: "json", write: () => undefined }),
      guestFolder: folder,
      serverId: "server1",
      host: `unix://${socket}`,
      certFolder: "",
      ociRuntime: "",
      imageOf: () => "box:1",
      contactTimeoutMs: 1500,
    });
  return { folder, socket, asked, open };
}

const givenUp = (socket: string): unknown => ({
  kind: "sandbox_unavailable",
  message: `the container engine at ${socket} cannot be reached: it does not answer`,
  facts: { reason: "engine_down" },
  retryable: true,
});

test("an engine that takes calls and never answers is given up when its time is over", async () => {
  const { folder, socket, asked, open } = await lab(() => undefined);
  await expect(open()).rejects.toMatchObject(givenUp(socket) as object);
  expect(asked).toEqual(["/_ping"]);
  expect(readdirSync(folder)).toEqual(["engine.sock"]);
});

test.each(["/version", "/info"])(
  "an engine that greets and then hangs on %s is given up in the same time",
  async (hung) => {
    const { folder, socket, asked, open } = await lab((request, response) => {
      if (request.url !== hung) response.end(JSON.stringify({ Version: "20.10", Os: "linux", Arch: "amd64" }));
    });
    await expect(open()).rejects.toMatchObject(givenUp(socket) as object);
    expect(asked.toSorted()).toEqual(["/_ping", "/info", "/version"]);
    expect(readdirSync(folder)).toEqual(["engine.sock"]);
  },
);

test("an engine on which nothing starts in time is tried again: that may pass", async () => {
  const time = new AbortController();
  const { open } = await lab((request, response) => {
    if (["/_ping", "/version", "/info"].includes(request.url ?? ""))
      response.end(JSON.stringify({ Version: "20.10", Os: "linux", Arch: "amd64" }));
    else {
      time.abort(new DOMException("over", "TimeoutError"));
      response.writeHead(500).end();
    }
  });
  const runtime = await open();
  onTestFinished(async () => await runtime.close());
  await expect(runtime.probe(time.signal)).rejects.toMatchObject({
    kind: "sandbox_unavailable",
    message: expect.stringContaining("containers do not start, or do not end, in time") as unknown,
    retryable: true,
  });
});
