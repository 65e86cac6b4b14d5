import { loadavg } from "node:os";
import { measureCalls, measureCrowd } from "./sandbox-calls.ts";
import type { AbsentCase, SandboxCase } from "./sandbox-case.ts";
import { measureBurst, measureCreates, measureMemory, type Servers } from "./sandbox-creates.ts";
import { startPeers } from "./sandbox-peers.ts";
import { startSandboxServer } from "./sandbox-server.ts";
import { ToolClient } from "./tool-client.ts";

const POOL_SIZE = 2;
/** Creating is slow beside a call, and each waits for a quiet machine. */
const ROUNDS_PER_CREATE = 4;

export interface SandboxResults {
  readonly cases: readonly SandboxCase[];
  readonly absent: readonly AbsentCase[];
  readonly burst: { readonly sandboxes: number; readonly seconds: number };
  readonly idleMegabytes: number;
  /** Sandboxes of the pooled case that were not warm: the figure counts only when there are none. */
  readonly missedPool: number;
  /** How busy the machine was before the first call: processes that wanted to run, over the last minute. */
  readonly loadBefore: number;
}

export interface SandboxOptions {
  readonly rounds: number;
  readonly log: (line: string) => void;
}

/** Two servers, one with a pool and one without, and the peers beside them. */
export async function measureSandboxes({ rounds, log }: SandboxOptions): Promise<SandboxResults> {
  const [loadBefore = Number.NaN] = loadavg();
  const peers = await startPeers(log);
  const warm = await startSandboxServer(POOL_SIZE);
  const cold = await startSandboxServer(0);
  const client = await ToolClient.open(warm.process.origin);
  const coldClient = await ToolClient.open(cold.process.origin);
  const servers: Servers = { warm, client, cold, coldClient };
  try {
    log(`calls: ${rounds} rounds`);
    const calls = await measureCalls(client, rounds);
    const createRounds = Math.ceil(rounds / ROUNDS_PER_CREATE);
    log(`creates: ${createRounds} rounds`);
    const { cases: creates, missedPool } = await measureCreates(servers, { rounds: createRounds, peers });
    log("memory of idle sandboxes");
    const idleMegabytes = await measureMemory(servers);
    log("many at once");
    const { each, seconds, sessions } = await measureBurst(servers);
    log("calls among many");
    const crowd = await measureCrowd({ lonely: coldClient, crowded: client, sessions, rounds: 4 * rounds });
    const cases = [...calls, ...creates, each, ...crowd];
    const burst = { sandboxes: sessions.length, seconds };
    return { cases, absent: peers.absent, burst, idleMegabytes, missedPool, loadBefore };
  } finally {
    client.close();
    coldClient.close();
    await Promise.all([warm.stop(), cold.stop()]);
    await peers.stop();
  }
}
