import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { runCli } from "./cli-process.ts";
import { startGoverned } from "./governance-lab.ts";
import { closeStreams, type EventReader, HttpSession } from "./http-client.ts";

let server: Awaited<ReturnType<typeof startGoverned>>;
let session: HttpSession;

beforeAll(async () => {
  const tools = { hold: { confirm: "client", cost: { fixed: 1 } } };
  server = await startGoverned({ governance: { tools, defaults: { monthlyBudget: 100 } } });
  session = await HttpSession.open(server.url, { capabilities: { elicitation: {} } });
});
afterAll(() => server.stop());
afterEach(() => closeStreams());

const switched = async (...args: readonly string[]): Promise<void> => {
  expect(await runCli(["mcp-server", ...args], { env: { SANDBOX_ROOT: server.root } })).toMatchObject({ code: 0 });
};

/** A call that stands before the question of its own client. */
async function waitingCall(id: number): Promise<{ running: EventReader; question: unknown }> {
  const params = { name: "hold", arguments: { label: "switch", releaseAfterMs: 0 } };
  const running = await session.open({ jsonrpc: "2.0", id, method: "tools/call", params });
  const question = await running.message(({ method }) => method === "elicitation/create");
  return { running, question: question.id };
}

const yes = (id: unknown): Promise<unknown> =>
  session.send({ jsonrpc: "2.0", id, result: { action: "accept", content: { approve: true } } });

async function hasStarted(): Promise<unknown> {
  const { body } = await session.call("observe", { label: "switch" });
  return body.result?.["structuredContent"];
}

const UNTOUCHED = { started: false, aborted: false, finished: false };

test("a call that waits when its client is paused does not run once it gets its yes", async () => {
  const { running, question } = await waitingCall(21);
  await switched("pause", "--all", "--reason", "runs wild");
  await yes(question);
  const answer = await running.message(({ id, method }) => id === 21 && method === undefined);
  expect(answer.error?.data).toMatchObject({ kind: "paused", reason: "runs wild" });
  await switched("resume", "--all");
  expect(await hasStarted()).toEqual(UNTOUCHED);
});

test("a call that was ended while it waited does not run, even when its client goes on by then, and costs nothing", async () => {
  const { running, question } = await waitingCall(22);
  await switched("pause", "--all", "--cancel");
  await switched("resume", "--all");
  await yes(question);
  const answer = await running.message(({ id, method }) => id === 22 && method === undefined);
  expect(answer.error?.data).toMatchObject({ kind: "cancelled" });
  expect(await hasStarted()).toEqual(UNTOUCHED);
  const { out } = await runCli(["mcp-server", "ledger", "list", "--tool", "hold", "--json"], {
    env: { SANDBOX_ROOT: server.root },
  });
  const { rows }: { readonly rows: readonly Record<string, unknown>[] } = JSON.parse(out);
  expect(rows[0]).toMatchObject({ outcome: "cancelled", error_kind: "cancelled", cost_micros: 0 });
});
