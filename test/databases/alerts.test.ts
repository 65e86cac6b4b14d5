import { describe, expect, test } from "vitest";
import { POSTGRES_MISSING, startPostgres } from "../services/postgres.ts";
import { type ReceivedAlert, startWebhook } from "../services/webhook.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { startHttp, until } from "../integration/harness.ts";

describe.skipIf(POSTGRES_MISSING !== undefined)(
  `alerts${POSTGRES_MISSING === undefined ? "" : `: ${POSTGRES_MISSING}`}`,
  () => {
    test("[004-R9.10] when the store is gone, webhook, log, health and metrics say the same, and so when it is back", async () => {
      const postgres = await startPostgres();
      const { url, received } = await startWebhook();
      const server = await startHttp({
        config: {
          store: { url: postgres.url },
          alerts: { webhook: url, checkSeconds: 1 },
          sandbox: { enabled: false, root: temporaryFolder({}) },
        },
      });
      const metric = async (): Promise<boolean> =>
        (await (await fetch(`${server.origin}/metrics`)).text()).includes(
          'owlclaw_health_check_status{check="limits"} 0\n',
        );
      const told = (event: string): ReceivedAlert[] => received.filter((alert) => alert.event === event);
      await postgres.kill();
      await until(
        () => told("limits_down"),
        (alerts) => alerts.length > 0,
      );
      expect(await server.logged("a dependency is down")).toMatchObject({ level: "error" });
      expect((await fetch(`${server.origin}/health`)).status).toBe(503);
      expect(await metric()).toBe(true);
      await postgres.start();
      await until(
        () => told("limits_recovered"),
        (alerts) => alerts.length > 0,
      );
      expect(told("limits_down")).toMatchObject([{ severity: "error" }]);
      expect(told("limits_recovered")).toMatchObject([{ severity: "info" }]);
      expect(await server.logged("a dependency is well again")).toMatchObject({ level: "info" });
      expect((await fetch(`${server.origin}/health`)).status).toBe(200);
      await server.stop();
      await postgres.stop();
    });
  },
);
