import { expect, test } from "vitest";
import { Registry } from "../../../src/capability/registry.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { openObservation } from "../../../src/server/observation.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics/metrics.ts";
import { temporaryFolder } from "../config/temporary-folder.ts";
import { ENTRY } from "../governance/ledger/ledger-entry.ts";
import { makeCall } from "../call/fixture.ts";

test("who fails to hear of a call takes nothing from the call, nor from the others who hear of it", async () => {
  const { config } = await loadConfig({ env: {}, cwd: temporaryFolder() });
  const lines: string[] = [];
  const logger = createLogger({ level: "info", format: "json", write: (line) => void lines.push(line) });
  const metrics = new Metrics();
  const stages = {
    finished() {
      throw new Error("no room");
    },
  };
  const { calls } = openObservation({
    config,
    logger,
    registry: new Registry(),
    metrics,
    governance: undefined,
    stages,
  });
  calls.finished({
    entry: ENTRY,
    call: makeCall(),
    thrown: undefined,
    quota: () => undefined,
    egressBytes: 0,
    sandbox: undefined,
    ledgerMs: 1,
    stages: { policyMs: 1, runMs: 1 },
  });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: "error", trace_id: ENTRY.traceId, error: { message: "no room" } },
    { message: "tool call", tool: "code_run" },
  ]);
  expect(await metrics.text()).toContain('owlclaw_calls_total{kind="tool",tool="code_run",outcome="ok"} 1\n');
});
