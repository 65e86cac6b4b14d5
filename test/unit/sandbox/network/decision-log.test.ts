import { expect, test } from "vitest";
import { DecisionLog, type EgressDecision } from "../../../../src/sandbox/network/decision-log.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";

const REFUSED = { host: "a.test", port: 443, allowed: false, isOpen: false, bytesSent: 0, bytesReceived: 0 };

function setUp(onDecision?: (decision: EgressDecision) => void) {
  const lines: string[] = [];
  const logger = createLogger({ level: "info", format: "json", write: (line) => lines.push(line) });
  const log = new DecisionLog({ sandboxId: "s", maxDecisions: 3, clock: () => 0, logger, onDecision });
  return { log, lines };
}

test("only the last decisions are kept, and one that ends after it was forgotten stays so", () => {
  const { log } = setUp();
  const first = log.add({ ...REFUSED, allowed: true, isOpen: true });
  for (let port = 1; port <= 5; port++) log.add({ ...REFUSED, port });
  log.update(first, { isOpen: false });
  expect(log.list().map(({ id, port }) => [id, port])).toEqual([
    [4, 3],
    [5, 4],
    [6, 5],
  ]);
});

test("a loop of refusals is one line in the log", () => {
  const { log, lines } = setUp();
  for (let count = 0; count < 100; count++) log.add(REFUSED);
  expect(lines.length).toBe(1);
});

test("a listener that throws does not stop the proxy", () => {
  const { log } = setUp(() => {
    throw new Error("no disk");
  });
  expect(log.add(REFUSED).id).toBe(1);
});
