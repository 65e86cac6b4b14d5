import { expect, onTestFinished, test } from "vitest";
import { alerting, ANSWERED, echo, FaultStory, REFUSED } from "../integration/fault-story.ts";
import { startHttp } from "../integration/harness.ts";
import { startPostgres } from "../services/postgres.ts";
import { startWebhook } from "../services/webhook.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";

test("[004-R9.10] when PostgreSQL is gone, calls are refused, and health, webhook, log and metrics say so; all is well by itself when it is back", async () => {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.stop());
  const webhook = await startWebhook();
  const root = temporaryFolder({});
  const server = await startHttp({ config: { ...alerting(webhook, root), store: { url: postgres.url } } });
  const host = new URL(postgres.url).searchParams.get("host") ?? postgres.url;
  const story = new FaultStory(server, webhook, { hidden: [root, host] });
  expect(await echo(server.url)).toMatchObject(ANSWERED);
  await postgres.kill();
  await story.tellsOf({ check: "store", status: "down", http: 503 });
  expect(await echo(server.url)).toMatchObject(REFUSED);
  await postgres.start();
  // Before any call: a balancer sends none to a server that is not ready.
  await story.recovers("store");
  expect(await echo(server.url)).toMatchObject(ANSWERED);
  await server.stop();
});
