import { availableParallelism, loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { dashboardAddresses } from "../src/operator/control-client.ts";
import { BusySandboxes } from "./busy-sandboxes.ts";
import { Viewer } from "./dashboard-viewer.ts";
import { cpuSecondsOf } from "./process-tree.ts";
import { atMost, type Goal, toTable } from "./report.ts";
import { type SandboxServer, startSandboxServer } from "./sandbox-server.ts";
import { median } from "./statistics.ts";

const SANDBOXES = 100;
/** They all have the view «Now» open, and each two sandboxes in other tabs. */
const OPERATORS = 3;
const WATCHED_EACH = 2;
/** So long after a change of who looks, before anything counts. */
const SETTLE_MS = 1000;
const MAX_LOST_PERCENT = 10;

export interface DashboardRound {
  readonly callsPerSecond: number;
  /** Of the server's own process. */
  readonly cpuMicrosPerCall: number;
  readonly kilobytesSeenPerSecond: number;
}

export interface DashboardResults {
  readonly rounds: readonly { readonly closed: DashboardRound; readonly open: DashboardRound }[];
  readonly loadBefore: number;
}

export interface DashboardOptions {
  readonly rounds: number;
  readonly secondsPerRound: number;
  readonly log: (line: string) => void;
}

/** One server under one load; the pages are open in every other stretch of it. */
export async function measureDashboard(options: DashboardOptions): Promise<DashboardResults> {
  const { rounds: count, secondsPerRound, log } = options;
  const [loadBefore = Number.NaN] = loadavg();
  const server = await startSandboxServer(0);
  try {
    log(`${SANDBOXES} sandboxes`);
    const load = await BusySandboxes.start(server.process.origin, SANDBOXES);
    const viewers = await signInAll(server);
    const watched = (await viewers[0]?.sandboxes()) ?? [];
    const measure = (isOpen: boolean): Promise<DashboardRound> =>
      load.guard(measureRound({ server, load, viewers, watched: isOpen ? watched : [], secondsPerRound }));
    const rounds: { closed: DashboardRound; open: DashboardRound }[] = [];
    try {
      await measure(true);
      while (rounds.length < count) {
        // The one that comes second finds the machine as the first has left it: by turns.
        const isOpenFirst = rounds.length % 2 === 1;
        const first = await measure(isOpenFirst);
        const second = await measure(!isOpenFirst);
        rounds.push(isOpenFirst ? { open: first, closed: second } : { closed: first, open: second });
        log(`${rounds.length} of ${count}: ${lost(rounds.slice(-1)).toFixed(1)} % lost`);
      }
    } finally {
      await load.stop();
    }
    return { rounds, loadBefore };
  } finally {
    await server.stop();
  }
}

export function dashboardReport({ rounds, loadBefore }: DashboardResults): string {
  const rowOf = (name: string, of: readonly DashboardRound[]): readonly string[] => [
    name,
    median(of.map(({ callsPerSecond }) => callsPerSecond)).toFixed(0),
    median(of.map(({ cpuMicrosPerCall }) => cpuMicrosPerCall)).toFixed(0),
    median(of.map(({ kilobytesSeenPerSecond }) => kilobytesSeenPerSecond)).toFixed(0),
  ];
  const table = toTable(
    ["dashboard", "calls/s", "server CPU µs/call", "KB/s seen"],
    [
      rowOf(
        "closed",
        rounds.map(({ closed }) => closed),
      ),
      rowOf(
        `open, ${OPERATORS} operators`,
        rounds.map(({ open }) => open),
      ),
    ],
  );
  return [
    `${SANDBOXES} busy sandboxes, ${rounds.length} rounds\n${table}`,
    `load of the machine before the run: ${loadBefore.toFixed(1)} on ${availableParallelism()} processors`,
  ].join("\n");
}

export function checkDashboardGoals({ rounds }: DashboardResults): readonly Goal[] {
  return [atMost("% of the throughput lost to the open dashboard", lost(rounds), MAX_LOST_PERCENT)];
}

/** Each round against itself, so that a machine that gets busier in between says nothing. */
function lost(rounds: DashboardResults["rounds"]): number {
  return (1 - median(rounds.map(({ open, closed }) => open.callsPerSecond / closed.callsPerSecond))) * 100;
}

async function signInAll({ dataFolder }: SandboxServer): Promise<readonly Viewer[]> {
  const viewers: Viewer[] = [];
  while (viewers.length < OPERATORS) {
    const [address] = await dashboardAddresses(dataFolder);
    viewers.push(await Viewer.signIn(address?.link ?? ""));
  }
  return viewers;
}

interface RoundOptions {
  readonly server: SandboxServer;
  readonly load: BusySandboxes;
  readonly viewers: readonly Viewer[];
  /** None while the pages are closed. */
  readonly watched: readonly string[];
  readonly secondsPerRound: number;
}

async function measureRound(options: RoundOptions): Promise<DashboardRound> {
  const { server, load, viewers, watched, secondsPerRound } = options;
  if (watched.length > 0) await Promise.all(viewers.map((viewer, at) => look(viewer, watched, at)));
  await delay(SETTLE_MS);
  const { pid } = server.process;
  const before = { calls: load.calls, cpu: await cpuSecondsOf(pid), bytes: bytesOf(viewers), at: performance.now() };
  await delay(secondsPerRound * 1000);
  const calls = load.calls - before.calls;
  const seconds = (performance.now() - before.at) / 1000;
  const kilobytes = (bytesOf(viewers) - before.bytes) / 1024;
  const cpuSeconds = (await cpuSecondsOf(pid)) - before.cpu;
  for (const viewer of viewers) viewer.lookAway();
  if (watched.length > 0 && kilobytes === 0) throw new Error("the pages were open and saw nothing");
  return {
    callsPerSecond: calls / seconds,
    cpuMicrosPerCall: (cpuSeconds * 1e6) / calls,
    kilobytesSeenPerSecond: kilobytes / seconds,
  };
}

async function look(viewer: Viewer, sandboxes: readonly string[], at: number): Promise<void> {
  await viewer.watch("live");
  const own = sandboxes.slice(at * WATCHED_EACH, (at + 1) * WATCHED_EACH);
  for (const id of own) await viewer.watch(`sandboxes/${id}/activity`);
}

function bytesOf(viewers: readonly Viewer[]): number {
  return viewers.reduce((sum, { bytes }) => sum + bytes, 0);
}
