import { expect, test } from "vitest";
import { ActivityLog, type Activity } from "../../../src/operator/activity-log.ts";

const USE = {
  instanceId: "owl-1",
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
  const use = log.callStarted(USE);
  for (let line = 0; line < 1000; line += 1) use.output({ callId: "c", stream: "stdout", text: `${line}\n` });
  const kept = replay(log);
  expect([kept.length, kept[0]?.seq, kept.at(-1)?.text]).toEqual([500, 502, "999\n"]);
  for (let line = 0; line < 100; line += 1) use.output({ callId: "c", stream: "stdout", text: "x".repeat(100_000) });
  const chars = replay(log).reduce((sum, { text = "" }) => sum + text.length, 0);
  expect(chars).toBeLessThanOrEqual(131_072);
});

function runCode(
  log: ActivityLog,
  code: string,
  outcome: { readonly images?: number[]; readonly error?: string },
): void {
  const use = log.callStarted({ ...USE, tool: "code_run", traceId: code, input: { code } });
  use.outcome({
    value: outcome.error === undefined ? {} : { traceback: outcome.error },
    blocks: (outcome.images ?? []).map((chars) => ({ type: "image", mimeType: "image/png", data: "x".repeat(chars) })),
  });
  use.ended();
}

test("pictures drive out older pictures, and no text", () => {
  const log = new ActivityLog();
  runCode(log, "old", { images: [1_000_000, 1_000_000] });
  runCode(log, "words", { error: "it went wrong" });
  const seen: Activity[] = [];
  log.follow("owl-1", (activity) => seen.push(activity));
  runCode(log, "many", { images: [1_500_000, 1_500_000, 1_500_000] });
  // Who looks sees all of it; who comes later, what there is room for.
  expect(seen.at(-1)?.cell?.images).toHaveLength(3);
  const results = replay(log).filter(({ tool, by }) => tool === "code_run" && by === undefined);
  expect(
    results.map(({ cell }) => [cell?.code, cell?.images?.length ?? 0, cell?.imagesGone ?? 0, cell?.error]),
  ).toEqual([
    ["old", 0, 2, undefined],
    ["words", 0, 0, "it went wrong"],
    ["many", 2, 1, undefined],
  ]);
});

test("errors take room like any other text", () => {
  const log = new ActivityLog();
  for (let at = 0; at < 100; at += 1) runCode(log, "x", { error: "e".repeat(8000) });
  const chars = replay(log).reduce((sum, { cell }) => sum + (cell?.error?.length ?? 0), 0);
  expect(chars).toBeLessThanOrEqual(131_072);
  expect(chars).toBeGreaterThan(100_000);
});

test("knows what runs where until it has ended", () => {
  const log = new ActivityLog();
  const [first, second] = [
    log.callStarted(USE),
    log.callStarted({ ...USE, tool: "code_run", traceId: "u", input: { code: "1" } }),
  ];
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
  const use = log.callStarted(USE);
  const seen: Activity[] = [];
  log.follow("owl-1", (activity) => seen.push(activity));
  log.ended("owl-1", "it was idle for too long");
  use.output({ callId: "c", stream: "stdout", text: "late" });
  log.network("owl-1", { host: "late.example", port: 443, allowed: false });
  expect(seen.map(({ text }) => text)).toEqual(["$ ls\n", "ended: it was idle for too long", "late"]);
  expect(replay(log)).toEqual([]);
});
