import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { headersOf, SECRET, token } from "../integration/governance-lab.ts";
import type { HttpServer } from "../integration/harness.ts";
import { modern } from "../integration/http-client.ts";
import { TASKS_EXTENSION } from "../integration/wire-messages.ts";
import { SERVICES_MISSING, type Services, startServices } from "../services/cluster.ts";

const CONFIG = {
  auth: { enabled: true, jwt: { secret: SECRET } },
  governance: { groups: { suspended: { deny: ["only_as_task"] } }, labels: { quiet: { deny: ["only_as_task"] } } },
};
const CAPABILITIES = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } };
const ANSWERED = { go: { action: "accept", content: { go: true } } };

describe.skipIf(SERVICES_MISSING !== undefined)(
  `a task on another server${SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`}`,
  () => {
    let services: Services;
    let home: HttpServer;
    let near: HttpServer;

    beforeAll(async () => {
      services = await startServices();
      home = await services.start({ config: CONFIG });
      near = await services.start({ config: CONFIG });
    });
    afterAll(async () => {
      await Promise.all([home.stop(), near.stop()]);
      await services.stop();
    });

    async function ask(
      at: HttpServer,
      method: string,
      params: object,
      groups: readonly string[] = [],
    ): Promise<Answer> {
      const headers = headersOf({ token: await token("ada", { groups }) });
      return (await modern(at.url, method, { ...params }, { capabilities: CAPABILITIES, headers })).body;
    }

    test("is judged with the groups and the label that its client has now, as on the server that runs it", async () => {
      const begun = await ask(home, "tools/call", { name: "only_as_task", arguments: {} });
      const taskId = String(begun.result?.["taskId"]);
      for (const server of [home, near]) {
        for (const [method, more] of [
          ["tasks/get", {}],
          ["tasks/update", { inputResponses: ANSWERED }],
        ] as const) {
          const { error } = await ask(server, method, { taskId, ...more }, ["suspended"]);
          expect(error?.data).toMatchObject({ kind: "governance_denied", rule: "groups.suspended.deny" });
        }
      }
      const headers = headersOf({ token: await token("ada"), label: "quiet" });
      const labelled = await modern(near.url, "tasks/get", { taskId }, { capabilities: CAPABILITIES, headers });
      expect(labelled.body.error?.data).toMatchObject({ kind: "governance_denied", rule: "labels.quiet.deny" });
      expect((await ask(near, "tasks/get", { taskId })).result).toMatchObject({ taskId });
      expect((await ask(near, "tasks/cancel", { taskId }, ["suspended"])).error).toBeUndefined();
    });
  },
);

type Answer = Awaited<ReturnType<typeof modern>>["body"];
