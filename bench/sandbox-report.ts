import { availableParallelism } from "node:os";
import { type Goal, atMost, toTable } from "./report.ts";
import type { SandboxCase, SandboxResults } from "./sandbox.ts";

const MAX_POOLED_MS = 3;
const MAX_WARM_MS = 1.5;
const MAX_SHELL_RATIO = 1.5;
const MAX_IDLE_MEGABYTES = 60;

export function sandboxReport({ cases, burst, idleMegabytes, missedPool, loadBefore }: SandboxResults): string {
  const echo = find(cases, "echo, the bare round trip");
  const bash = find(cases, "bash -c true, a plain subprocess");
  const rows = cases.map(({ name, samples, p50Ms, p99Ms }) => [
    name,
    String(samples),
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
    (p50Ms - echo.p50Ms).toFixed(2),
    (p50Ms / bash.p50Ms).toFixed(2),
  ]);
  return [
    `sandboxes over HTTP, end to end\n${toTable(["case", "samples", "p50 ms", "p99 ms", "p50 - echo", "p50 / bash"], rows)}`,
    `${burst.sandboxes} creates at once took ${burst.seconds.toFixed(2)} s`,
    `${idleMegabytes.toFixed(1)} MB (PSS) per idle sandbox`,
    `load of the machine before the run: ${loadBefore.toFixed(1)} on ${availableParallelism()} processors`,
    ...(missedPool > 0
      ? [`${missedPool} creates found the pool empty: the machine was too busy for the pooled figure`]
      : []),
  ].join("\n");
}

export function checkSandboxGoals({ cases, idleMegabytes }: SandboxResults): readonly Goal[] {
  const p50 = (name: string): number => find(cases, name).p50Ms;
  const echo = p50("echo, the bare round trip");
  const bash = p50("bash -c true, a plain subprocess");
  return [
    atMost("pooled create + first result, ms above echo", p50("pooled create + first result") - echo, MAX_POOLED_MS),
    atMost("the same out of a silence", p50("the same out of a silence") - p50("echo out of a silence"), MAX_POOLED_MS),
    atMost("code_run python, ms above echo", p50("code_run python, warm") - echo, MAX_WARM_MS),
    atMost("code_run node, ms above echo", p50("code_run node, warm") - echo, MAX_WARM_MS),
    atMost("shell_exec true against bash -c true", p50("shell_exec true") / bash, MAX_SHELL_RATIO),
    atMost("MB per idle sandbox", idleMegabytes, MAX_IDLE_MEGABYTES),
  ];
}

function find(cases: readonly SandboxCase[], name: string): SandboxCase {
  const found = cases.find((each) => each.name === name);
  if (found === undefined) throw new Error(`${name} was not measured`);
  return found;
}
