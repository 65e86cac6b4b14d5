/** So many are looked at in one go: with more of them, each is looked at more seldom. */
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

/** What sandboxes use of the machine, as long as somebody looks. */
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

  /** One after the other: whoever works in them must not notice. */
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
    // One that is just ending cannot be asked.
    const askedAt = performance.now();
    const usage = await this.#usageOf(instanceId).catch(() => undefined);
    if (usage === undefined) return void this.#samples.delete(instanceId);
    const { cpuMs, memoryBytes } = usage;
    const before = this.#samples.get(instanceId);
    // Nobody knows when exactly it was read: over a short while that would be most of the answer.
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
