import type { Approval } from "../governance/approval/approvals.ts";
import type { RunningCall, RunningCalls } from "../call/running-calls.ts";
import type { SandboxSummary } from "../sandbox/sandbox-summary.ts";
import type { HealthReport } from "../telemetry/health.ts";
import { sessionDigest } from "../telemetry/redact.ts";
import type { ActivityLog } from "./activity-log.ts";
import type { CallNow, CallStage, CheckNow, HealthNow, Now, Pause, QueueNow, SandboxNow } from "./contract.ts";

/** The sources of the current state. */
export interface NowSources {
  readonly version: string;
  readonly activity: ActivityLog;
  readonly usage: UsageSampler;
  /** All sandboxes that are alive. Empty when sandboxes are disabled. */
  readonly sandboxes: () => readonly SandboxSummary[];
  /** The number of sandboxes in the warm pool, and the maximum number of sandboxes. */
  readonly room: () => { readonly ready: number; readonly most: number };
  readonly running: RunningCalls;
  readonly approvals: () => readonly Approval[];
  readonly pauses: () => readonly Pause[];
  readonly health: () => Promise<HealthReport>;
}

/** Limits the number of calls that the page lists. */
const MAX_CALLS = 200;
/** Ledger ids of ended sandboxes are kept, so that their pages can still show their ledger rows. */
const MAX_REMEMBERED = 5000;

/** The current state, computed on request. */
export class CurrentState {
  readonly #sources: NowSources;
  readonly #startedAt = new Date(Date.now() - process.uptime() * 1000).toISOString();
  readonly #ledgerIds = new Map<string, string>();
  #health: HealthNow = { status: "ok", checks: {} };

  constructor(sources: NowSources) {
    this.#sources = sources;
  }

  /** Updates health and usage, which are too slow to compute for every snapshot. */
  async look(): Promise<void> {
    const { health, usage, sandboxes } = this.#sources;
    const { status, checks } = await health();
    const shown: Record<string, CheckNow> = {};
    for (const [name, { status: each, message, detail = message }] of Object.entries(checks))
      shown[name] = { status: each, message: detail };
    this.#health = { status, checks: shown };
    await usage.sample(sandboxes().map(({ instanceId }) => instanceId));
  }

  now(): Now {
    const { version, sandboxes, running, room, approvals, pauses } = this.#sources;
    const waiting = approvals();
    const alive = sandboxes();
    const queue: QueueNow = { running: running.size, waiting: waiting.length, alive: alive.length, ...room() };
    return {
      version,
      startedAt: this.#startedAt,
      sandboxes: alive.map((each) => this.#sandbox(each)),
      calls: this.#calls(waiting),
      queue,
      health: this.#health,
      approvals: waiting.map(({ id }) => id),
      paused: pauses(),
    };
  }

  sandbox(instanceId: string): SandboxNow | undefined {
    const found = this.#sources.sandboxes().find((each) => each.instanceId === instanceId);
    return found && this.#sandbox(found);
  }

  /**
   * The id of the sandbox in ledger rows, also after it has ended. Undefined when the sandbox was never part of a
   * snapshot.
   */
  ledgerIdOf(instanceId: string): string | undefined {
    return this.#ledgerIds.get(instanceId);
  }

  #ledgerId({ id, instanceId }: SandboxSummary): string {
    const known = this.#ledgerIds.get(instanceId);
    if (known !== undefined) return known;
    const [oldest] = this.#ledgerIds.keys();
    if (oldest !== undefined && this.#ledgerIds.size >= MAX_REMEMBERED) this.#ledgerIds.delete(oldest);
    const digest = sessionDigest(id);
    this.#ledgerIds.set(instanceId, digest);
    return digest;
  }

  #sandbox(summary: SandboxSummary): SandboxNow {
    const { instanceId, state, ownerId, template, flavor, runtime, takenOverBy } = summary;
    const { usage, activity } = this.#sources;
    return {
      id: instanceId,
      ledgerId: this.#ledgerId(summary),
      state,
      owner: ownerId,
      template,
      flavor,
      runtime,
      createdAt: isoTime(summary.createdAtMs),
      lastUsedAt: isoTime(summary.lastUsedAtMs),
      expiresAt: isoTime(summary.endsAtMs),
      ...usage.of(instanceId),
      running: activity.runningIn(instanceId),
      ...(takenOverBy !== undefined && { takenOverBy }),
    };
  }

  #calls(waiting: readonly Approval[]): CallNow[] {
    const inSandbox = this.#sources.activity.sandboxesOfCalls();
    const asking = new Set(waiting.map(({ traceId }) => traceId));
    const calls: CallNow[] = [];
    const counts = new Map<string, number>();
    for (const running of this.#sources.running) {
      if (calls.length >= MAX_CALLS) break;
      const { traceId } = running.call;
      const count = (counts.get(traceId) ?? 0) + 1;
      counts.set(traceId, count);
      const sandbox = inSandbox.get(traceId);
      const { principal, label } = running.call.caller;
      calls.push({
        // One request may contain several calls with the same trace id.
        id: count === 1 ? traceId : `${traceId}.${count}`,
        principal: principal.id,
        ...(label !== undefined && { label }),
        tool: running.name,
        startedAt: isoTime(running.time),
        ...(sandbox !== undefined && { sandbox }),
        stage: stageOf(running, asking),
      });
    }
    return calls;
  }
}

function stageOf({ stage, call }: RunningCall, asking: ReadonlySet<string>): CallStage {
  return stage === "policy" && asking.has(call.traceId) ? "approval" : stage;
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** How many sandboxes one round measures. With more sandboxes, each is measured less often. */
const MAX_AT_ONCE = 50;
const MIN_APART_MS = 500;

export interface SandboxUsage {
  readonly cpuPercent?: number;
  readonly memoryBytes?: number;
}

interface Measured {
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

interface Sample {
  readonly atMs: number;
  readonly cpuMs: number;
  readonly shown: SandboxUsage;
}

/** Measures the CPU and memory use of sandboxes while an operator watches. */
export class UsageSampler {
  readonly #usageOf: (instanceId: string) => Promise<Measured | undefined>;
  readonly #samples = new Map<string, Sample>();
  #next = 0;

  constructor(usageOf: (instanceId: string) => Promise<Measured | undefined>) {
    this.#usageOf = usageOf;
  }

  of(instanceId: string): SandboxUsage {
    return this.#samples.get(instanceId)?.shown ?? {};
  }

  /** Measures one sandbox after the other, to keep the load low. */
  async sample(instanceIds: readonly string[]): Promise<void> {
    const alive = new Set(instanceIds);
    for (const known of this.#samples.keys()) if (!alive.has(known)) this.#samples.delete(known);
    const count = Math.min(MAX_AT_ONCE, instanceIds.length);
    for (let step = 0; step < count; step += 1) {
      const instanceId = instanceIds[(this.#next + step) % instanceIds.length];
      if (instanceId !== undefined) await this.#look(instanceId);
    }
    this.#next = instanceIds.length === 0 ? 0 : (this.#next + count) % instanceIds.length;
  }

  async #look(instanceId: string): Promise<void> {
    // A sandbox that is ending cannot be measured.
    const askedAt = performance.now();
    const usage = await this.#usageOf(instanceId).catch(() => undefined);
    if (usage === undefined) return void this.#samples.delete(instanceId);
    const { cpuMs, memoryBytes } = usage;
    const before = this.#samples.get(instanceId);
    // The exact time of the measurement within the request is unknown. Over a short interval this error would dominate
    // the result.
    if (before !== undefined && askedAt - before.atMs < MIN_APART_MS) {
      return void this.#samples.set(instanceId, { ...before, shown: { ...before.shown, memoryBytes } });
    }
    const atMs = (askedAt + performance.now()) / 2;
    const cpuPercent =
      before === undefined ? undefined : Math.max(0, Math.round(((cpuMs - before.cpuMs) / (atMs - before.atMs)) * 100));
    this.#samples.set(instanceId, {
      atMs,
      cpuMs,
      shown: { memoryBytes, ...(cpuPercent !== undefined && { cpuPercent }) },
    });
  }
}
