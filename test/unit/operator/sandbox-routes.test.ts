import { duplexPair } from "node:stream";
import { expect, test } from "vitest";
import { ActivityLog } from "../../../src/operator/activity-log.ts";
import { OperatorSandboxService } from "../../../src/operator/sandbox-service.ts";
import { sandboxRoutes } from "../../../src/operator/sandbox-routes.ts";
import { GuestClient } from "../../../src/sandbox/guest-client.ts";
import type { ConnectedInstance, InstanceStarter } from "../../../src/sandbox/instance-starter.ts";
import { Sandbox } from "../../../src/sandbox/sandbox.ts";
import type { Sandboxes } from "../../../src/sandbox/sandboxes.ts";
import { StartPauses } from "../../../src/sandbox/start-pauses.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { PLAN } from "../sandbox/instance-plan.ts";

const MINUTE_MS = 60_000;
/** A sandbox that may live for ten minutes, in a place that ends by itself. */
function lab(placeEndsInMs: number | undefined) {
  const nowMs = Date.now();
  const client = new GuestClient({ stream: duplexPair()[0], maxFrameBytes: 1000, logger: SILENT_LOGGER });
  const instance: ConnectedInstance = {
    client,
    ended: client.lost,
    isOver: false,
    endsAtMs: placeEndsInMs && nowMs + placeEndsInMs,
    bytesMoved: 0,
    usage: async () => ({ memoryBytes: 0, cpuMs: 0, pids: 0 }),
    close: async () => client.fail("closed"),
  };
  const times = { createdAtMs: nowMs, idleMs: 10 * MINUTE_MS, maxAgeMs: 10 * MINUTE_MS };
  const sandbox = new Sandbox({
    facts: { id: "session", ownerId: "ada", mcpSessionId: undefined, labels: {}, ...times },
    plan: { ...PLAN, instanceId: "owl-1" },
    starter: {} as InstanceStarter,
    open: async () => instance,
    pauses: new StartPauses(),
    logger: SILENT_LOGGER,
    keepWorkspace: false,
    startTexts: undefined,
  });
  const recorded: unknown[] = [];
  const service = new OperatorSandboxService({
    sandboxes: { findByInstance: () => sandbox } as unknown as Sandboxes,
    activity: new ActivityLog(),
    record: async ({ name, args }) => void recorded.push([name, args]),
  });
  const routes = sandboxRoutes({ service, now: () => undefined, workspacePath: "/workspace" });
  const route = routes.find(({ path }) => path === "sandboxes/{id}/extend");
  const extend = async (minutes: number): Promise<unknown> =>
    route?.answer({
      operator: { id: "root", scopes: [], claims: {} },
      parts: ["owl-1"],
      query: new URLSearchParams(),
      body: { minutes },
      bytes: new Blob([]).stream(),
      signal: new AbortController().signal,
    });
  return { extend, recorded, at: (minutes: number) => new Date(nowMs + minutes * MINUTE_MS).toISOString() };
}

test("a sandbox is extended as far as its machine lasts; what goes beyond is refused, and not on the record", async () => {
  const { extend, recorded, at } = lab(45 * MINUTE_MS);
  expect(await extend(30)).toEqual({ expiresAt: at(40) });
  await expect(extend(30)).rejects.toMatchObject({
    kind: "invalid_params",
    message: `the sandbox's machine ends by itself at ${at(45)}`,
    hint: "extend it by at most 5 minutes",
  });
  expect(await extend(5)).toEqual({ expiresAt: at(45) });
  await expect(extend(1)).rejects.toMatchObject({ hint: "save what is needed, and go on in a new sandbox" });
  expect(recorded).toEqual([
    ["operator.extend", { sandbox: "owl-1", minutes: 30 }],
    ["operator.extend", { sandbox: "owl-1", minutes: 5 }],
  ]);
});

test("where nothing ends by itself, a sandbox is extended by a day", async () => {
  const { extend, at } = lab(undefined);
  expect(await extend(1440)).toEqual({ expiresAt: at(1450) });
});
