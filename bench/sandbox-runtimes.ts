import { setTimeout as delay } from "node:timers/promises";
import { DockerEngine } from "./docker-engine.ts";
import { PodmanEngine } from "./podman-engine.ts";
import { toTable } from "./report.ts";
import { CASES, CODE, interleave, type SandboxCase, toCase } from "./sandbox-case.ts";
import { type SandboxServer, startSandboxServer } from "./sandbox-server.ts";
import { ToolClient } from "./tool-client.ts";

const POOL_SIZE = 2;
const WARMUP_ROUNDS = 10;
const ROUNDS_PER_CREATE = 5;
/** The pool fills up within this time after it gave one away. */
const REFILL_MS = 2500;

export interface RuntimeCases {
  readonly name: string;
  readonly cases: readonly SandboxCase[];
  /** Why it could not be measured on this machine. */
  readonly absent?: string;
}

interface Engine {
  readonly settings: Readonly<Record<string, unknown>>;
  stop(): Promise<void>;
}

const ENGINES: Readonly<Record<string, (log: (line: string) => void) => Promise<Engine>>> = {
  docker: async (log) => await DockerEngine.start(log),
  podman: async (log) => await PodmanEngine.start(log),
};

/** The same cases for each runtime, taken in turn, so that a busy moment hits all of them. */
export interface RuntimeResults {
  readonly runtimes: readonly RuntimeCases[];
  /** Creates that found the pool empty, and count as they are. */
  readonly missedPool: number;
}

interface Subject {
  readonly warm: SandboxServer;
  readonly client: ToolClient;
  readonly cold: SandboxServer;
  readonly coldClient: ToolClient;
  readonly session: Readonly<Record<string, unknown>>;
}

export async function measureRuntimes(options: {
  readonly rounds: number;
  readonly log: (line: string) => void;
}): Promise<RuntimeResults> {
  const { rounds, log } = options;
  const { engines, absent } = await startEngines(log);
  const subjects: Subject[] = [];
  try {
    const all = [{ runtime: "bubblewrap" }, ...[...engines.values()].map(({ settings }) => settings)];
    for (const settings of all) subjects.push(await openSubject(settings));
    log(`calls: ${rounds} rounds`);
    const work: Record<string, () => Promise<number>> = {};
    for (const [at, subject] of subjects.entries()) Object.assign(work, named(at, callsOf(subject)));
    const calls = await interleave(work, { rounds, warmupRounds: WARMUP_ROUNDS });
    const createRounds = Math.ceil(rounds / ROUNDS_PER_CREATE);
    log(`creates: ${createRounds} rounds`);
    const creates = await measureCreates(subjects, createRounds);
    const casesOf = (at: number): SandboxCase[] =>
      [...calls, ...creates]
        .filter(({ name }) => name.startsWith(`${at} `))
        .map((each) => ({ ...each, name: each.name.slice(2) }));
    const warm = subjects.reduce((sum, { warm: { process } }) => sum + process.warmCreates, 0);
    // Each subject opened one sandbox before.
    const missedPool = subjects.length * (createRounds + 1) - warm;
    const measured = ["bwrap", ...engines.keys()].map((name, at) => ({ name, cases: casesOf(at) }));
    return { runtimes: [...measured, ...absent], missedPool };
  } finally {
    for (const { client, coldClient, warm, cold } of subjects) {
      client.close();
      coldClient.close();
      await Promise.all([warm.stop(), cold.stop()]);
    }
    for (const engine of engines.values()) await engine.stop();
  }
}

/** Those that this machine has, and why it has no others. */
async function startEngines(
  log: (line: string) => void,
): Promise<{ readonly engines: ReadonlyMap<string, Engine>; readonly absent: readonly RuntimeCases[] }> {
  const engines = new Map<string, Engine>();
  const absent: RuntimeCases[] = [];
  for (const [name, start] of Object.entries(ENGINES)) {
    try {
      engines.set(name, await start(log));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log(`${name}: absent, ${reason}`);
      absent.push({ name, cases: [], absent: reason });
    }
  }
  return { engines, absent };
}

export function runtimesReport({ runtimes, missedPool }: RuntimeResults): string {
  const note = missedPool > 0 ? `\n${missedPool} creates found the pool empty` : "";
  return `sandboxes by runtime, end to end, ms\n${runtimesTable(runtimes)}${note}`;
}

/** Ratios are to the first of them. What a runtime has no figure for is marked, and why is said below. */
export function runtimesTable(runtimes: RuntimeResults["runtimes"]): string {
  const [base, ...others] = runtimes;
  const figure = (ms: number | undefined): string => (ms === undefined ? "absent" : ms.toFixed(2));
  const rows = (base?.cases ?? []).map(({ name, p50Ms, p99Ms }) => {
    const found = others.map(({ cases }) => cases.find((each) => each.name === name));
    const figures = found.flatMap((each) => [figure(each?.p50Ms), figure(each?.p99Ms)]);
    const ratios = found.map((each) => figure(each === undefined ? undefined : each.p50Ms / p50Ms));
    return [name, figure(p50Ms), figure(p99Ms), ...figures, ...ratios];
  });
  const head = [
    "case",
    ...runtimes.flatMap(({ name }) => [`${name} p50`, "p99"]),
    ...others.map(({ name }) => `${name} / ${base?.name ?? ""}`),
  ];
  const reasons = runtimes.flatMap(({ name, absent }) =>
    absent === undefined ? [] : [`${name} is absent: ${absent}`],
  );
  return [toTable(head, rows), ...reasons].join("\n");
}

async function openSubject(settings: Readonly<Record<string, unknown>>): Promise<Subject> {
  const warm = await startSandboxServer(POOL_SIZE, settings);
  const cold = await startSandboxServer(0, settings);
  const client = await ToolClient.open(warm.process.origin);
  const coldClient = await ToolClient.open(cold.process.origin);
  await delay(REFILL_MS);
  return { warm, client, cold, coldClient, session: await openSession(client) };
}

/** A sandbox that is there, with a file in it. */
export async function openSession(client: ToolClient): Promise<Subject["session"]> {
  const { fields } = await client.call("code_run", { code: CODE });
  const session = { session_id: fields["session_id"] };
  await client.call("file_write", { ...session, path: "kilobyte.txt", content: "x".repeat(1024) });
  return session;
}

export function callsOf({
  client,
  session,
}: Pick<Subject, "client" | "session">): Record<string, () => Promise<number>> {
  const timed = async (tool: string, args: Readonly<Record<string, unknown>>): Promise<number> =>
    (await client.call(tool, { ...session, ...args })).ms;
  return {
    [CASES.python]: () => timed("code_run", { code: CODE, language: "python" }),
    [CASES.node]: () => timed("code_run", { code: "console.log(6 * 7)", language: "node" }),
    [CASES.shell]: () => timed("shell_exec", { command: "true" }),
    [CASES.read]: () => timed("file_read", { path: "kilobyte.txt" }),
  };
}

async function measureCreates(subjects: readonly Subject[], rounds: number): Promise<readonly SandboxCase[]> {
  const samples = new Map<string, number[]>();
  const add = (name: string, ms: number): void => void samples.set(name, [...(samples.get(name) ?? []), ms]);
  for (let round = 0; round < rounds; round += 1) {
    await delay(REFILL_MS);
    for (const [at, { client, coldClient }] of subjects.entries()) {
      add(`${at} ${CASES.pooled}`, await createAndRun(client));
      add(`${at} ${CASES.cold}`, await createAndRun(coldClient));
    }
  }
  return [...samples].map(([name, ms]) => toCase(name, ms));
}

export async function createAndRun(client: ToolClient): Promise<number> {
  const { ms, fields } = await client.call("code_run", { code: CODE });
  await client.call("sandbox_destroy", { session_id: fields["session_id"] });
  return ms;
}

function named<T>(at: number, work: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(work).map(([name, each]) => [`${at} ${name}`, each]));
}
