import { performance } from "node:perf_hooks";
import { descendants, pssMegabytes, settled } from "./process-tree.ts";
import { CASES, CODE, type SandboxCase, toCase } from "./sandbox-case.ts";
import type { Peers } from "./sandbox-peers.ts";
import type { SandboxServer } from "./sandbox-server.ts";
import { ToolClient } from "./tool-client.ts";

const BURST = 50;
const IDLE_SANDBOXES = 10;
/** How long no process may come or go before the pool counts as full and the machine as quiet. */
const QUIET_MS = 300;
/** Calls of other clients just before a create, as a server in service has them. */
const TRAFFIC = 30;

export interface Servers {
  readonly warm: SandboxServer;
  readonly client: ToolClient;
  readonly cold: SandboxServer;
  readonly coldClient: ToolClient;
}

export interface Creates {
  readonly cases: readonly SandboxCase[];
  readonly missedPool: number;
}

/** Each create waits until the pool is full again; once after traffic, once out of the silence with an echo like it. */
export async function measureCreates(
  { warm, client, cold, coldClient }: Servers,
  { rounds, peers }: { readonly rounds: number; readonly peers: Peers },
): Promise<Creates> {
  const quiet = (server: SandboxServer): Promise<void> => settled(server.process.pid, QUIET_MS);
  const echo = async (): Promise<number> => (await client.call("echo", { text: "hello" })).ms;
  const steps: Readonly<Record<string, () => Promise<number>>> = {
    [CASES.pooled]: async () => {
      await quiet(warm);
      for (let call = 0; call < TRAFFIC; call += 1) await echo();
      return createAndRun(client);
    },
    [CASES.silent]: () => quiet(warm).then(() => createAndRun(client)),
    [CASES.silentEcho]: () => quiet(warm).then(echo),
    [CASES.cold]: () => quiet(cold).then(() => createAndRun(coldClient)),
    ...peers.work,
  };
  const warmBefore = warm.process.warmCreates;
  const samples = Object.keys(steps).map((name) => ({ name, ms: new Array<number>() }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, ms } of samples) ms.push((await steps[name]?.()) ?? Number.NaN);
  }
  return {
    cases: samples.map(({ name, ms }) => toCase(name, ms)),
    missedPool: 2 * rounds - (warm.process.warmCreates - warmBefore),
  };
}

async function createAndRun(client: ToolClient): Promise<number> {
  const { ms, fields } = await client.call("code_run", { code: CODE });
  if (fields["session_created"] !== true) throw new Error("the call was not answered by a new sandbox");
  await client.call("sandbox_destroy", { session_id: fields["session_id"] });
  return ms;
}

/** Each has run code once, so that its interpreter is there. */
export async function measureMemory({ cold, coldClient }: Servers): Promise<number> {
  await settled(cold.process.pid, QUIET_MS);
  const before = await pssMegabytes(await descendants(cold.process.pid));
  const sessions: unknown[] = [];
  for (let made = 0; made < IDLE_SANDBOXES; made += 1) {
    sessions.push((await coldClient.call("code_run", { code: CODE })).fields["session_id"]);
  }
  await settled(cold.process.pid, QUIET_MS);
  const after = await pssMegabytes(await descendants(cold.process.pid));
  for (const session of sessions) await coldClient.call("sandbox_destroy", { session_id: session });
  return (after - before) / IDLE_SANDBOXES;
}

export interface Burst {
  readonly each: SandboxCase;
  /** From the first request to the last answer of all of them. */
  readonly seconds: number;
  /** They are all still there. */
  readonly sessions: readonly unknown[];
}

export async function measureBurst({ warm }: Servers): Promise<Burst> {
  const clients = await Promise.all(Array.from({ length: BURST }, () => ToolClient.open(warm.process.origin)));
  try {
    await settled(warm.process.pid, QUIET_MS);
    const startedAt = performance.now();
    const answers = await Promise.all(clients.map((client) => client.call("code_run", { code: CODE })));
    const seconds = (performance.now() - startedAt) / 1000;
    await settled(warm.process.pid, QUIET_MS);
    return {
      each: toCase(
        CASES.burst,
        answers.map(({ ms }) => ms),
      ),
      seconds,
      sessions: answers.map(({ fields }) => fields["session_id"]),
    };
  } finally {
    for (const client of clients) client.close();
  }
}
