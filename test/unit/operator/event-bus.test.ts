import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ActivityLog } from "../../../src/operator/activity-log.ts";
import { EventBus } from "../../../src/operator/event-bus.ts";
import { CurrentState, UsageSampler } from "../../../src/operator/current-state.ts";
import type { Approval } from "../../../src/governance/approval/approvals.ts";
import { RunningCalls } from "../../../src/call/running-calls.ts";
import type { HealthReport } from "../../../src/telemetry/health.ts";
import type { SandboxSummary } from "../../../src/sandbox/sandbox-summary.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function summary(instanceId: string): SandboxSummary {
  const times = { createdAtMs: 0, lastUsedAtMs: 0, endsAtMs: 0 };
  const made = { runtime: "bubblewrap", state: "ready", template: "python", flavor: "small", labels: {} } as const;
  return { id: "secret", ownerId: "ada", instanceId, ...made, ...times, takenOverBy: undefined };
}

function approval(id: string): Approval {
  const asked = { principal: "ada", label: undefined, kind: "tool", name: "file_write", args: {}, hash: "h" };
  return { id, ...asked, rule: "ask", reason: undefined, traceId: "0".repeat(32), createdAtMs: 0, expiresAtMs: 1 };
}

function lab() {
  const sandboxes: SandboxSummary[] = [];
  const waiting: Approval[] = [];
  const looks = vi.fn<() => Promise<HealthReport>>(() => Promise.resolve({ status: "ok", checks: {} }));
  const listings = vi.fn<() => readonly SandboxSummary[]>(() => sandboxes);
  const board = new CurrentState({
    version: "1",
    activity: new ActivityLog(),
    usage: new UsageSampler(() => Promise.resolve(undefined)),
    sandboxes: listings,
    room: () => ({ ready: 0, most: 10 }),
    running: new RunningCalls(),
    approvals: () => waiting,
    pauses: () => [],
    health: looks,
  });
  return { hub: new EventBus(board), sandboxes, waiting, looks, listings };
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

  test("shows operators all that is known of a check", async () => {
    const { hub, looks } = lab();
    const store = { status: "down", message: "it fails", detail: "/srv/ledger.db fails", latency_ms: 1 } as const;
    looks.mockResolvedValue({ status: "unavailable", checks: { store } });
    const { sent, sink } = viewer();
    const leave = hub.join(sink);
    await vi.advanceTimersByTimeAsync(5000);
    leave();
    const checks = { store: { status: "down", message: "/srv/ledger.db fails" } };
    expect(sent.at(-1)?.[1]).toMatchObject({ health: { checks } });
  });

  test("looks at health once at a time, however often viewers leave and come while it does", async () => {
    const { hub, looks } = lab();
    const answers: ((report: HealthReport) => void)[] = [];
    looks.mockImplementation(() => new Promise((resolve) => answers.push(resolve)));
    for (let times = 0; times < 5; times += 1) hub.join(viewer().sink)();
    const leave = hub.join(viewer().sink);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(answers.length).toBe(1);
    answers[0]?.({ status: "ok", checks: {} });
    await vi.advanceTimersByTimeAsync(1900);
    expect(answers.length).toBe(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(answers.length).toBe(2);
    leave();
    hub.join(viewer().sink)();
    answers[1]?.({ status: "ok", checks: {} });
    await vi.advanceTimersByTimeAsync(10_000);
    expect([answers.length, vi.getTimerCount()]).toEqual([2, 0]);
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

  test("tells that another call waits for an operator, though there are as many as before", async () => {
    const { hub, waiting } = lab();
    waiting.push(approval("first"));
    const { sent, sink } = viewer();
    hub.join(sink);
    waiting.splice(0, 1, approval("second"));
    await vi.advanceTimersByTimeAsync(300);
    expect(sent.at(-1)).toEqual(["change", { approvals: ["second"] }]);
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
