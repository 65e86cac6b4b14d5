import { availableParallelism } from "node:os";
import { type Goal, atMost, toTable } from "./report.ts";
import { type AbsentCase, CASES, type SandboxCase } from "./sandbox-case.ts";
import type { SandboxResults } from "./sandbox.ts";

const MAX_POOLED_MS = 3;
const MAX_POOLED_TO_DOCKER = 0.1;
const MAX_WARM_MS = 1.5;
const MAX_SHELL_RATIO = 1.5;
const MAX_IDLE_MEGABYTES = 60;
const AIMED_IDLE_MEGABYTES = 30;
/** Equal but for the noise of a median. */
const MAX_CROWD_RATIO = 1.25;

export function sandboxReport(results: SandboxResults): string {
  const { cases, absent, burst, idleMegabytes, missedPool, loadBefore } = results;
  const echo = find(cases, CASES.echo).p50Ms;
  const bash = find(cases, CASES.bash).p50Ms;
  const rows = cases.map(({ name, samples, p50Ms, p99Ms }) => [
    name,
    String(samples),
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
    (p50Ms - echo).toFixed(2),
    (p50Ms / bash).toFixed(2),
  ]);
  const aim = idleMegabytes <= AIMED_IDLE_MEGABYTES ? "met" : "missed";
  return [
    `sandboxes over HTTP, end to end\n${toTable(["case", "samples", "p50 ms", "p99 ms", "p50 - echo", "p50 / bash"], rows)}`,
    ...absent.map(({ name, reason }) => `not measured: ${name}: ${reason}`),
    `${burst.sandboxes} creates at once took ${burst.seconds.toFixed(2)} s`,
    `${idleMegabytes.toFixed(1)} MB (PSS) per idle sandbox; the aim of ${AIMED_IDLE_MEGABYTES} is ${aim}`,
    `load of the machine before the run: ${loadBefore.toFixed(1)} on ${availableParallelism()} processors`,
    ...(missedPool > 0
      ? [`${missedPool} creates found the pool empty: the machine was too busy for the pooled figure`]
      : []),
  ].join("\n");
}

export function checkSandboxGoals({ cases, absent, idleMegabytes }: SandboxResults): readonly Goal[] {
  const p50 = (name: string): number => find(cases, name).p50Ms;
  const echo = p50(CASES.echo);
  return [
    atMost("pooled create + first result, ms above echo", p50(CASES.pooled) - echo, MAX_POOLED_MS),
    atMost("the same out of a silence", p50(CASES.silent) - p50(CASES.silentEcho), MAX_POOLED_MS),
    isAbsent(absent, CASES.dockerRun)
      ? { goal: "pooled create against docker run, at most", measured: Number.NaN, limit: MAX_POOLED_TO_DOCKER }
      : atMost("pooled create against docker run", p50(CASES.pooled) / p50(CASES.dockerRun), MAX_POOLED_TO_DOCKER),
    atMost("code_run python, ms above echo", p50(CASES.python) - echo, MAX_WARM_MS),
    atMost("code_run node, ms above echo", p50(CASES.node) - echo, MAX_WARM_MS),
    atMost("shell_exec true against bash -c true", p50(CASES.shell) / p50(CASES.bash), MAX_SHELL_RATIO),
    atMost("MB per idle sandbox", idleMegabytes, MAX_IDLE_MEGABYTES),
    atMost("file_read among 50 sandboxes against alone", p50(CASES.crowded) / p50(CASES.alone), MAX_CROWD_RATIO),
  ];
}

function isAbsent(absent: readonly AbsentCase[], name: string): boolean {
  return absent.some((each) => each.name === name);
}

function find(cases: readonly SandboxCase[], name: string): SandboxCase {
  const found = cases.find((each) => each.name === name);
  if (found === undefined) throw new Error(`${name} was not measured`);
  return found;
}
