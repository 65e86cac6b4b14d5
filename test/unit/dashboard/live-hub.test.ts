import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ActivityLog } from "../../../src/dashboard/activity-log.ts";
import { LiveHub } from "../../../src/dashboard/live-hub.ts";
import { NowBoard } from "../../../src/dashboard/now-board.ts";
import { UsageSampler } from "../../../src/dashboard/usage-sampler.ts";
import { RunningCalls } from "../../../src/pipeline/running-calls.ts";
import type { HealthReport } from "../../../src/telemetry/health.ts";
import type { SandboxSummary } from "../../../src/sandbox/sandbox-summary.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function summary(cellId: string): SandboxSummary {
  const times = { createdAtMs: 0, lastUsedAtMs: 0, endsAtMs: 0 };
  const made = { runtime: "bubblewrap", state: "ready", template: "python", flavor: "small", labels: {} } as const;
  return { id: "secret", ownerId: "ada", cellId, ...made, ...times, takenOverBy: undefined };
}

function lab() {
  const sandboxes: SandboxSummary[] = [];
  const looks = vi.fn<() => Promise<HealthReport>>(() => Promise.resolve({ status: "ok", checks: {} }));
  const listings = vi.fn<() => readonly SandboxSummary[]>(() => sandboxes);
  const board = new NowBoard({
    version: "1",
    activity: new ActivityLog(),
    usage: new UsageSampler(() => Promise.resolve(undefined)),
    sandboxes: listings,
    room: () => ({ ready: 0, most: 10 }),
    running: new RunningCalls(),
    approvals: () => [],
    pauses: () => [],
    health: looks,
  });
  return { hub: new LiveHub(board), sandboxes, looks, listings };
}

function viewer() {
  const sent: [string, Record<string, unknown>][] = [];
  const send = (event: string, data: string): void => void sent.push([event, JSON.parse(data)]);
  return { sent, sink: { send, end: () => undefined } };
}

describe("the hub", () => {
  test("does nothing at all before somebody looks and after the last one has left", async () => {
    const { hub, listings, looks } = lab();
    await vi.advanceTimersByTimeAsync(10_000);
    expect([listings.mock.calls.length, looks.mock.calls.length, vi.getTimerCount()]).toEqual([0, 0, 0]);
    const leave = hub.join(viewer().sink);
    await vi.advanceTimersByTimeAsync(5000);
    expect(listings.mock.calls.length).toBeGreaterThan(0);
    leave();
    await vi.advanceTimersByTimeAsync(5000);
    const before = listings.mock.calls.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect([listings.mock.calls.length, vi.getTimerCount()]).toEqual([before, 0]);
  });

  test("tells at most four changes a second, and makes each once for all viewers", async () => {
    const { hub, sandboxes, listings } = lab();
    const viewers = Array.from({ length: 20 }, viewer);
    for (const { sink } of viewers) hub.join(sink);
    const before = listings.mock.calls.length;
    for (let step = 0; step < 100; step += 1) {
      sandboxes.push(summary(`owl-${step}`));
      await vi.advanceTimersByTimeAsync(10);
    }
    const [first] = viewers;
    const changes = first?.sent.filter(([event]) => event === "change") ?? [];
    expect(changes.length).toBeLessThanOrEqual(4);
    expect(listings.mock.calls.length - before).toBeLessThanOrEqual(6);
    const told = changes.flatMap(([, change]) => change["sandboxes"]);
    expect(told.length).toBe(100);
    expect(viewers.every(({ sent }) => JSON.stringify(sent.at(-1)) === JSON.stringify(first?.sent.at(-1)))).toBe(true);
    expect(JSON.stringify(first?.sent)).not.toContain("secret");
  });

  test("says nothing while nothing changes, and names what has gone", async () => {
    const { hub, sandboxes } = lab();
    sandboxes.push(summary("owl-1"));
    const { sent, sink } = viewer();
    hub.join(sink);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(sent.map(([event]) => event)).toEqual(["now"]);
    sandboxes.pop();
    await vi.advanceTimersByTimeAsync(300);
    expect(sent.at(-1)).toEqual(["change", { sandboxesGone: ["owl-1"], queue: expect.objectContaining({ alive: 0 }) }]);
  });
});
