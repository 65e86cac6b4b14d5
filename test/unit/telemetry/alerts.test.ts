import { createServer, type RequestListener } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Alert, createAlerts } from "../../../src/telemetry/alerts.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { wholeBody } from "../../services/whole-body.ts";

const ALERT: Alert = { event: "ledger_failed", severity: "error", message: "The disk is full.", facts: { hint: "x" } };

async function listen(serve: RequestListener): Promise<string> {
  const server = createServer(serve);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/hook/s3cret`;
}

function logged(): { lines: string[]; logger: ReturnType<typeof createLogger> } {
  const lines: string[] = [];
  return { lines, logger: createLogger({ level: "debug", format: "json", write: (line) => void lines.push(line) }) };
}

test("posts alerts as JSON, in their order", async () => {
  const bodies: Record<string, unknown>[] = [];
  const webhook = await listen((request, response) => {
    void wholeBody(request).then((body) => {
      if (body === undefined) return;
      bodies.push(JSON.parse(body) as Record<string, unknown>);
      response.end();
    });
  });
  const alerts = createAlerts({ webhook, logger: logged().logger });
  alerts.send(ALERT);
  alerts.send({ ...ALERT, event: "second" });
  await alerts.close();
  expect(bodies).toEqual([
    { time: expect.any(String), ...ALERT },
    { time: expect.any(String), ...ALERT, event: "second" },
  ]);
});

test.each([
  ["an error", ((_, response) => void response.writeHead(500).end()) satisfies RequestListener],
  ["a redirect", ((_, response) => void response.writeHead(302, { location: "/" }).end()) satisfies RequestListener],
  ["a broken line", ((request) => void request.destroy()) satisfies RequestListener],
])("%s is tried twice, logged without the address, and holds up nothing", async (_, serve) => {
  let requests = 0;
  const webhook = await listen((request, response) => {
    requests += 1;
    serve(request, response);
  });
  const { lines, logger } = logged();
  const alerts = createAlerts({ webhook, logger });
  alerts.send(ALERT);
  await alerts.close();
  expect([requests, lines.length]).toEqual([2, 1]);
  expect(lines[0]).toContain("alert not delivered");
  expect(lines[0]).not.toContain("s3cret");
});

test("without a webhook nobody is told", async () => {
  const { lines, logger } = logged();
  const alerts = createAlerts({ webhook: "", logger });
  alerts.send(ALERT);
  await alerts.close();
  expect(lines).toEqual([]);
});

test("of the ledger's heads that wait the newest stands for all, so that trouble and its end arrive when the webhook is back", async () => {
  let isDead = true;
  const events: string[] = [];
  const webhook = await listen((request, response) => {
    if (isDead) return void request.destroy();
    void wholeBody(request).then((body) => {
      if (body === undefined) return;
      const { event, message } = JSON.parse(body) as Alert;
      events.push(`${event} ${message}`);
      response.end();
    });
  });
  const alerts = createAlerts({ webhook, logger: logged().logger, firstPauseMs: 1 });
  const head = (count: number): Alert => ({ event: "ledger_head", severity: "info", message: `${count}`, facts: {} });
  for (let count = 1; count <= 150; count += 1) alerts.send(head(count));
  alerts.send({ ...ALERT, message: "full" });
  for (let count = 151; count <= 300; count += 1) alerts.send(head(count));
  alerts.send({ ...ALERT, event: "ledger_recovered", message: "well" });
  await vi.waitFor(() => expect(alerts.isInTrouble).toBe(true), { timeout: 10_000 });
  isDead = false;
  await vi.waitFor(() => expect(events).toHaveLength(4), { timeout: 10_000 });
  await alerts.close();
  // The first was under way when the others came.
  expect(events).toEqual(["ledger_head 1", "ledger_failed full", "ledger_head 300", "ledger_recovered well"]);
});
