import { describe, expect, test } from "vitest";
import { REDIS_MISSING, startRedis } from "../services/redis.ts";
import { type ReceivedAlert, startWebhook } from "../services/webhook.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { startHttp, until } from "../integration/harness.ts";

describe.skipIf(REDIS_MISSING !== undefined)(`alerts${REDIS_MISSING === undefined ? "" : `: ${REDIS_MISSING}`}`, () => {
  test("[004-R9.10] when the store of limits is gone, webhook, log, health and metrics say the same, and so when it is back", async () => {
    const redis = await startRedis();
    const { url, received } = await startWebhook();
    const server = await startHttp({
      config: {
        limits: { url: redis.url },
        alerts: { webhook: url, checkSeconds: 1 },
        sandbox: { enabled: false, root: temporaryFolder({}) },
      },
    });
    const metric = async (): Promise<boolean> =>
      (await (await fetch(`${server.origin}/metrics`)).text()).includes(
        'owlclaw_health_check_status{check="limits"} 0\n',
      );
    const told = (event: string): ReceivedAlert[] => received.filter((alert) => alert.event === event);
    await redis.kill();
    await until(
      () => told("limits_down"),
      (alerts) => alerts.length > 0,
    );
    expect(await server.logged("a dependency is down")).toMatchObject({ check: "limits", level: "error" });
    expect((await fetch(`${server.origin}/health`)).status).toBe(503);
    expect(await metric()).toBe(true);
    await redis.start();
    await until(
      () => told("limits_recovered"),
      (alerts) => alerts.length > 0,
    );
    expect(told("limits_down")).toMatchObject([{ severity: "error" }]);
    expect(told("limits_recovered")).toMatchObject([{ severity: "info" }]);
    expect(await server.logged("a dependency is well again")).toMatchObject({ check: "limits" });
    expect((await fetch(`${server.origin}/health`)).status).toBe(200);
    await server.stop();
    await redis.stop();
  });
});
