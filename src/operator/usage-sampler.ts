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
  readonly #usageOf: (cellId: string) => Promise<Measured | undefined>;
  readonly #samples = new Map<string, Sample>();
  #next = 0;

  constructor(usageOf: (cellId: string) => Promise<Measured | undefined>) {
    this.#usageOf = usageOf;
  }

  of(cellId: string): SandboxUsage {
    return this.#samples.get(cellId)?.shown ?? {};
  }

  /** One after the other: whoever works in them must not notice. */
  async sample(cellIds: readonly string[]): Promise<void> {
    const alive = new Set(cellIds);
    for (const known of this.#samples.keys()) if (!alive.has(known)) this.#samples.delete(known);
    const count = Math.min(MAX_AT_ONCE, cellIds.length);
    for (let step = 0; step < count; step += 1) {
      const cellId = cellIds[(this.#next + step) % cellIds.length];
      if (cellId !== undefined) await this.#look(cellId);
    }
    this.#next = cellIds.length === 0 ? 0 : (this.#next + count) % cellIds.length;
  }

  async #look(cellId: string): Promise<void> {
    // One that is just ending cannot be asked.
    const askedAt = performance.now();
    const usage = await this.#usageOf(cellId).catch(() => undefined);
    if (usage === undefined) return void this.#samples.delete(cellId);
    const { cpuMs, memoryBytes } = usage;
    const before = this.#samples.get(cellId);
    // Nobody knows when exactly it was read: over a short while that would be most of the answer.
    if (before !== undefined && askedAt - before.atMs < MIN_APART_MS) {
      return void this.#samples.set(cellId, { ...before, shown: { ...before.shown, memoryBytes } });
    }
    const atMs = (askedAt + performance.now()) / 2;
    const cpuPercent =
      before === undefined ? undefined : Math.max(0, Math.round(((cpuMs - before.cpuMs) / (atMs - before.atMs)) * 100));
    this.#samples.set(cellId, { atMs, cpuMs, shown: { memoryBytes, ...(cpuPercent !== undefined && { cpuPercent }) } });
  }
}
