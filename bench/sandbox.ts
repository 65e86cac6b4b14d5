import { loadavg } from "node:os";
import { performance } from "node:perf_hooks";
import { descendants, pssMegabytes, settled } from "./process-tree.ts";
import { type SandboxServer, startSandboxServer } from "./sandbox-server.ts";
import { spawnBash, spawnBubblewrap } from "./spawn-time.ts";
import { median, quantile } from "./statistics.ts";
import { ToolClient } from "./tool-client.ts";

const POOL_SIZE = 2;
const BURST = 50;
const IDLE_SANDBOXES = 10;
/** How long no process may come or go before the pool counts as full and the machine as quiet. */
const QUIET_MS = 300;
/** Creating is slow beside a call, and each waits for a quiet machine. */
const ROUNDS_PER_CREATE = 4;
/** Node compiles what runs often: a server in service is past that. */
const WARMUP_CALLS = 1000;
const WARMUP_ROUNDS = 50;
/** Calls of other clients just before a create, as a server in service has them. */
const TRAFFIC = 30;
const CODE = "print(6 * 7)";

export interface SandboxCase {
  readonly name: string;
  readonly samples: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface SandboxResults {
  readonly cases: readonly SandboxCase[];
  /** From the first request to the last answer of all of them. */
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

interface Bench {
  readonly warm: SandboxServer;
  readonly client: ToolClient;
  readonly cold: SandboxServer;
  readonly coldClient: ToolClient;
}

/** Every sample of a case stands beside one of each other case, so that a busy moment of the machine hits all alike. */
export async function measureSandboxes({ rounds, log }: SandboxOptions): Promise<SandboxResults> {
  const [loadBefore = Number.NaN] = loadavg();
  const warm = await startSandboxServer(POOL_SIZE);
  const cold = await startSandboxServer(0);
  const client = await ToolClient.open(warm.process.origin);
  const coldClient = await ToolClient.open(cold.process.origin);
  const bench = { warm, client, cold, coldClient };
  try {
    log(`calls: ${rounds} rounds`);
    const calls = await measureCalls(bench, rounds);
    log(`creates: ${Math.ceil(rounds / ROUNDS_PER_CREATE)} rounds`);
    const { cases, missedPool } = await measureCreates(bench, Math.ceil(rounds / ROUNDS_PER_CREATE));
    log(`memory of ${IDLE_SANDBOXES} idle sandboxes`);
    const idleMegabytes = await measureMemory(bench);
    log(`${BURST} creates at once`);
    const burst = await measureBurst(warm);
    return { cases: [...calls, ...cases, burst.each], burst: burst.all, idleMegabytes, missedPool, loadBefore };
  } finally {
    client.close();
    coldClient.close();
    await Promise.all([warm.stop(), cold.stop()]);
  }
}

async function measureCalls({ client }: Bench, rounds: number): Promise<readonly SandboxCase[]> {
  const { fields } = await client.call("code_run", { code: CODE });
  const session = { session_id: fields["session_id"] };
  await client.call("file_write", { ...session, path: "kilobyte.txt", content: "x".repeat(1024) });
  const timed = async (tool: string, args: Readonly<Record<string, unknown>>): Promise<number> =>
    (await client.call(tool, args)).ms;
  const work: Readonly<Record<string, () => Promise<number>>> = {
    "echo, the bare round trip": () => timed("echo", { text: "hello" }),
    "code_run python, warm": () => timed("code_run", { ...session, code: CODE, language: "python" }),
    "code_run node, warm": () => timed("code_run", { ...session, code: "console.log(6 * 7)", language: "node" }),
    "shell_exec true": () => timed("shell_exec", { ...session, command: "true" }),
    "file_read 1 KB": () => timed("file_read", { ...session, path: "kilobyte.txt" }),
    "bash -c true, a plain subprocess": spawnBash,
    "bwrap … true, fresh for each command": spawnBubblewrap,
  };
  for (let call = 0; call < WARMUP_CALLS; call += 1) await timed("echo", { text: "hello" });
  const samples = Object.keys(work).map((name) => ({ name, ms: new Array<number>() }));
  for (let round = -WARMUP_ROUNDS; round < rounds; round += 1) {
    for (const { name, ms } of samples) {
      const sample = (await work[name]?.()) ?? Number.NaN;
      if (round >= 0) ms.push(sample);
    }
  }
  await client.call("sandbox_destroy", session);
  return samples.map(({ name, ms }) => toCase(name, ms));
}

/** Each create waits until the pool is full again; once after traffic, once out of the silence with an echo like it. */
async function measureCreates(
  { warm, client, cold, coldClient }: Bench,
  rounds: number,
): Promise<{ readonly cases: readonly SandboxCase[]; readonly missedPool: number }> {
  const echoMs: number[] = [];
  const pooledMs: number[] = [];
  const silentMs: number[] = [];
  const coldMs: number[] = [];
  const warmBefore = warm.process.warmCreates;
  for (let round = 0; round < rounds; round += 1) {
    await settled(warm.process.pid, QUIET_MS);
    echoMs.push((await client.call("echo", { text: "hello" })).ms);
    await settled(warm.process.pid, QUIET_MS);
    silentMs.push(await createAndRun(client));
    await settled(warm.process.pid, QUIET_MS);
    for (let call = 0; call < TRAFFIC; call += 1) await client.call("echo", { text: "hello" });
    pooledMs.push(await createAndRun(client));
    await settled(cold.process.pid, QUIET_MS);
    coldMs.push(await createAndRun(coldClient));
  }
  return {
    cases: [
      toCase("pooled create + first result", pooledMs),
      toCase("the same out of a silence", silentMs),
      toCase("echo out of a silence", echoMs),
      toCase("cold create + first result", coldMs),
    ],
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
async function measureMemory({ cold, coldClient }: Bench): Promise<number> {
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

async function measureBurst(
  warm: SandboxServer,
): Promise<{ readonly each: SandboxCase; readonly all: SandboxResults["burst"] }> {
  const clients = await Promise.all(Array.from({ length: BURST }, () => ToolClient.open(warm.process.origin)));
  try {
    await settled(warm.process.pid, QUIET_MS);
    const startedAt = performance.now();
    const answers = await Promise.all(clients.map((client) => client.call("code_run", { code: CODE })));
    const seconds = (performance.now() - startedAt) / 1000;
    const each = toCase(
      `create + first result, ${BURST} at once`,
      answers.map(({ ms }) => ms),
    );
    return { each, all: { sandboxes: BURST, seconds } };
  } finally {
    for (const client of clients) client.close();
  }
}

function toCase(name: string, ms: readonly number[]): SandboxCase {
  return { name, samples: ms.length, p50Ms: median(ms), p99Ms: quantile(ms, 0.99) };
}
