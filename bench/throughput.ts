import { existsSync } from "node:fs";
import { runLoad } from "./load.ts";
import { ServerProcess } from "./server-process.ts";
import { median, quantile } from "./statistics.ts";
import { type Door, type Target, DOORS } from "./targets.ts";

export interface ThroughputOptions {
  readonly targets: readonly Target[];
  readonly rounds: number;
  readonly secondsPerRound: number;
  readonly warmupSeconds: number;
  readonly connections: number;
  readonly log: (line: string) => void;
}

interface Round {
  readonly callsPerSecond: number;
  readonly cpuMicrosPerCall: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** How much of one core the load generator used: near 1, the client was the limit and the server could do more. */
  readonly clientLoad: number;
}

export interface CaseResult extends Round {
  readonly door: Door;
  readonly target: string;
  readonly rssMegabytes: number;
  readonly rounds: readonly Round[];
}

interface Case {
  readonly door: Door;
  readonly target: Target;
  readonly server: ServerProcess;
  readonly rounds: Round[];
}

/** Rounds are interleaved (A B C, A B C, …), so that a busy moment of the machine hits everybody alike. */
export async function measureThroughput(options: ThroughputOptions): Promise<readonly CaseResult[]> {
  const cases: Case[] = [];
  try {
    for (const target of options.targets) cases.push(...(await startCases(target, options)));
    for (const one of cases) await load(one, options.connections, options.warmupSeconds);
    for (let round = 1; round <= options.rounds; round += 1) {
      options.log(`round ${round} of ${options.rounds}`);
      for (const one of cases) one.rounds.push(await measureRound(one, options));
    }
    const results = await Promise.all(cases.map(summarize));
    return DOORS.flatMap((door) => results.filter((result) => result.door === door));
  } finally {
    await Promise.all(cases.map(({ server }) => server.stop()));
  }
}

/** Each door has a process of its own, so that CPU and memory can be told apart. */
async function startCases(target: Target, { log }: ThroughputOptions): Promise<readonly Case[]> {
  const program = target.args[0] ?? "";
  if (!existsSync(program)) {
    log(`${target.name}: left out, ${program} is missing`);
    return [];
  }
  return Promise.all(
    target.doors.map(async (door) => ({ door, target, server: await startServer(target, door), rounds: [] })),
  );
}

export function startServer(target: Target, door: Door): Promise<ServerProcess> {
  return door === "stdio" ? ServerProcess.startStdio(target.args) : ServerProcess.startHttp(target.args);
}

async function load({ server, door, target }: Case, connections: number, seconds: number): ReturnType<typeof runLoad> {
  try {
    return await runLoad({ server, door, token: target.token, connections, until: { seconds } });
  } catch (error) {
    throw new Error(`${target.name} over ${door}`, { cause: error });
  }
}

async function measureRound(one: Case, { connections, secondsPerRound }: ThroughputOptions): Promise<Round> {
  const cpuBefore = await one.server.cpuSeconds();
  const clientBefore = process.cpuUsage();
  const { calls, seconds, latenciesMs } = await load(one, connections, secondsPerRound);
  const client = process.cpuUsage(clientBefore);
  const cpuSeconds = (await one.server.cpuSeconds()) - cpuBefore;
  return {
    callsPerSecond: calls / seconds,
    cpuMicrosPerCall: (cpuSeconds * 1e6) / calls,
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
    clientLoad: (client.user + client.system) / 1e6 / seconds,
  };
}

async function summarize({ door, target, server, rounds }: Case): Promise<CaseResult> {
  const middle = (field: keyof Round): number => median(rounds.map((round) => round[field]));
  return {
    door,
    target: target.name,
    callsPerSecond: middle("callsPerSecond"),
    cpuMicrosPerCall: middle("cpuMicrosPerCall"),
    p50Ms: middle("p50Ms"),
    p99Ms: middle("p99Ms"),
    clientLoad: middle("clientLoad"),
    rssMegabytes: await server.rssMegabytes(),
    rounds,
  };
}
