import { expect, test } from "vitest";
import type { Activity } from "../../../src/dashboard/activity.ts";
import { ActivityLog } from "../../../src/dashboard/activity-log.ts";

const USE = {
  cellId: "owl-1",
  tool: "shell_exec",
  traceId: "t",
  principal: "ada",
  input: { command: "ls" },
  language: "python",
};

function replay(log: ActivityLog): Activity[] {
  const seen: Activity[] = [];
  log.follow("owl-1", (activity) => seen.push(activity))();
  return seen;
}

test("keeps the last five hundred entries, and of large ones what fits", () => {
  const log = new ActivityLog();
  const use = log.began(USE);
  for (let line = 0; line < 1000; line += 1) use.printed({ callId: "c", stream: "stdout", text: `${line}\n` });
  const kept = replay(log);
  expect([kept.length, kept[0]?.seq, kept.at(-1)?.text]).toEqual([500, 502, "999\n"]);
  for (let line = 0; line < 100; line += 1) use.printed({ callId: "c", stream: "stdout", text: "x".repeat(100_000) });
  const chars = replay(log).reduce((sum, { text = "" }) => sum + text.length, 0);
  expect(chars).toBeLessThanOrEqual(131_072);
});

test("knows what runs where until it has ended", () => {
  const log = new ActivityLog();
  const [first, second] = [log.began(USE), log.began({ ...USE, tool: "code_run", traceId: "u", input: { code: "1" } })];
  expect([log.runningIn("owl-1"), Object.fromEntries(log.sandboxesOfCalls())]).toEqual([
    "code_run",
    { t: "owl-1", u: "owl-1" },
  ]);
  second.ended();
  first.ended();
  expect([log.runningIn("owl-1"), log.sandboxesOfCalls().size]).toEqual([null, 0]);
});

test("forgets a sandbox with its end, also when its last words come later", () => {
  const log = new ActivityLog();
  const use = log.began(USE);
  const seen: Activity[] = [];
  log.follow("owl-1", (activity) => seen.push(activity));
  log.ended("owl-1", "it was idle for too long");
  use.printed({ callId: "c", stream: "stdout", text: "late" });
  log.network("owl-1", { host: "late.example", port: 443, allowed: false });
  expect(seen.map(({ text }) => text)).toEqual(["$ ls\n", "ended: it was idle for too long", "late"]);
  expect(replay(log)).toEqual([]);
});
