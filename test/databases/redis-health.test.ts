import { expect, test } from "vitest";
import { startHttp, until } from "../integration/harness.ts";
import { startRedis } from "../services/redis.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";

async function ask(origin: string, path = "/health"): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${origin}${path}`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

test("when Redis is gone the server is not ready and says why; when it is back, it is", async () => {
  const redis = await startRedis();
  const server = await startHttp({
    config: { limits: { url: redis.url }, sandbox: { enabled: false, root: temporaryFolder({}) } },
  });
  expect((await ask(server.origin)).status).toBe(200);
  await redis.kill();
  const down = await until(
    () => ask(server.origin),
    ({ status }) => status === 503,
  );
  expect(down.body).toMatchObject({
    status: "unavailable",
    checks: {
      limits: { status: "down", message: expect.stringMatching(/cannot be counted/) },
      store: { status: "ok" },
    },
  });
  expect((await ask(server.origin, "/health/ready")).status).toBe(503);
  await redis.start();
  await until(
    () => ask(server.origin, "/health/ready"),
    ({ status }) => status === 200,
  );
  await server.stop();
  await redis.stop();
});
