import type { SoakResult } from "./soak.ts";
import type { StartResult } from "./start-time.ts";
import { BASELINE, type Door, DOORS, GOVERNED, STARTED, UNGOVERNED } from "./targets.ts";
import type { CaseResult } from "./throughput.ts";

export interface Goal {
  readonly goal: string;
  readonly measured: number;
  readonly limit: number;
  /** Absent where this machine could not measure it. */
  readonly isMet?: boolean;
}

/** 400 ms on a machine that starts Node in 40: as a ratio, the goal holds on slower and busier ones too. */
const MAX_START_RATIO = 10;

export const MAX_GOVERNANCE_CPU_MICROS = 60;
export const MAX_GOVERNANCE_MS = 1;

/** A table in plain text: the first column to the left, numbers to the right. */
export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ");
  return [line(head), ...rows.map(line)].join("\n");
}

export function throughputReport(results: readonly CaseResult[]): string {
  const head = ["server", "calls/s", "ratio", "CPU µs/call", "ratio", "p50 ms", "p99 ms", "RSS MB", "client load"];
  return DOORS.flatMap((door) => {
    const ofDoor = results.filter((result) => result.door === door);
    if (ofDoor.length === 0) return [];
    const baseline = ofDoor.find(({ target }) => target === BASELINE[door]);
    return [
      `${door}, ratios to ${BASELINE[door]}\n${toTable(
        head,
        ofDoor.map((result) => row(result, baseline)),
      )}`,
    ];
  }).join("\n\n");
}

export function startReport(results: readonly StartResult[]): string {
  const rows = results.map(({ target, milliseconds, ratioToNode }) => [
    target,
    milliseconds.toFixed(0),
    ratioToNode.toFixed(2),
  ]);
  return `start to first answer over stdio\n${toTable(["server", "ms", "ratio to node -e 0"], rows)}`;
}

export function soakReport(results: readonly SoakResult[]): string {
  const rows = results.map(({ target, door, calls, rssMegabytes, growthMegabytes }) => [
    `${target} ${door}`,
    String(calls),
    ...rssMegabytes.map((value) => value.toFixed(0)),
    growthMegabytes.toFixed(1),
  ]);
  return `memory (RSS in MB) over the calls\n${toTable(["server", "calls", "25%", "50%", "75%", "100%", "50% to 100%"], rows)}`;
}

/** What the product promises about its own speed, where this run measured it. */
export function checkGoals(results: readonly CaseResult[], starts: readonly StartResult[]): readonly Goal[] {
  const goals = [...againstSdk(results), ...ofGovernance(results)];
  const start = starts.find(({ target }) => target === STARTED);
  if (start !== undefined)
    goals.push(atMost("start to first answer against node -e 0", start.ratioToNode, MAX_START_RATIO));
  return goals;
}

/** With pipeline and trace ids on: what governance adds has goals of its own, since the others have nothing like it. */
function againstSdk(results: readonly CaseResult[]): readonly Goal[] {
  const goals = (["http-2026", "http-2025"] as const).flatMap((door) => {
    const { ours, baseline } = pair(results, door);
    if (ours === undefined || baseline === undefined) return [];
    return [
      atLeast(`${door}: calls/s against ${baseline.target}`, ours.callsPerSecond / baseline.callsPerSecond, 4),
      atMost(
        `${door}: CPU per call against ${baseline.target}`,
        ours.cpuMicrosPerCall / baseline.cpuMicrosPerCall,
        0.25,
      ),
    ];
  });
  const { ours, baseline } = pair(results, "stdio");
  if (ours !== undefined && baseline !== undefined) {
    goals.push(atLeast(`stdio: calls/s against ${baseline.target}`, ours.callsPerSecond / baseline.callsPerSecond, 1));
  }
  return goals;
}

/** A token, a rule, limits, a budget and a durable record, against the same server without any of it. */
function ofGovernance(results: readonly CaseResult[]): readonly Goal[] {
  return (["http-2026", "http-2025"] as const).flatMap((door) => {
    const { ours: base } = pair(results, door);
    const governed = results.find((result) => result.door === door && result.target === GOVERNED);
    if (base === undefined || governed === undefined) return [];
    return [
      atMost(
        `${door}: governance, CPU µs a call`,
        governed.cpuMicrosPerCall - base.cpuMicrosPerCall,
        MAX_GOVERNANCE_CPU_MICROS,
      ),
      atMost(`${door}: governance, ms more at p50`, governed.p50Ms - base.p50Ms, MAX_GOVERNANCE_MS),
    ];
  });
}

export function goalsReport(goals: readonly Goal[]): string {
  if (goals.length === 0) return "no goal was measured: they need owlclaw and the server it is compared with";
  const rows = goals.map(({ goal, measured, limit, isMet }) => [
    goal,
    isMet === undefined ? "" : measured.toFixed(2),
    limit.toString(),
    isMet === undefined ? "not measured" : isMet ? "met" : "MISSED",
  ]);
  return `goals\n${toTable(["goal", "measured", "limit", ""], rows)}`;
}

function row(result: CaseResult, baseline: CaseResult | undefined): readonly string[] {
  return [
    result.target,
    result.callsPerSecond.toFixed(0),
    ratio(result.callsPerSecond, baseline?.callsPerSecond),
    result.cpuMicrosPerCall.toFixed(0),
    ratio(result.cpuMicrosPerCall, baseline?.cpuMicrosPerCall),
    result.p50Ms.toFixed(2),
    result.p99Ms.toFixed(2),
    result.rssMegabytes.toFixed(0),
    result.clientLoad.toFixed(2),
  ];
}

function ratio(value: number, base: number | undefined): string {
  return base === undefined ? "" : (value / base).toFixed(2);
}

function pair(
  results: readonly CaseResult[],
  door: Door,
): { ours: CaseResult | undefined; baseline: CaseResult | undefined } {
  const find = (name: string): CaseResult | undefined =>
    results.find((result) => result.door === door && result.target === name);
  return { ours: find(UNGOVERNED[door]), baseline: find(BASELINE[door]) };
}

export function atLeast(goal: string, measured: number, limit: number): Goal {
  return { goal: `${goal}, at least`, measured, limit, isMet: measured >= limit };
}

export function atMost(goal: string, measured: number, limit: number): Goal {
  return { goal: `${goal}, at most`, measured, limit, isMet: measured <= limit };
}
