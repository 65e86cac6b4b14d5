import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { activeSpan, untraced } from "../telemetry/tracing/active-span.ts";
import type { Flavor } from "./flavors.ts";
import type { ConnectedInstance, InstancePlan } from "./instance-starter.ts";

/** Claims of this long ago say how many will come next. */
const DEMAND_WINDOW_MS = 15_000;
/** Demand may raise the pool this far above its configured size. */
const MAX_GROWTH = 4;
const WARM_TIMEOUT_MS = 60_000;
const REHEARSALS = 2;
const REHEARSAL_MS = 10_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
const OPEN_AT_ONCE = 2;
/** Whoever claimed one uses it now; starting others at the same moment would take the processor from it. */
const REFILL_DELAY_MS = 60;

export interface WarmInstance {
  readonly plan: InstancePlan;
  readonly instance: ConnectedInstance;
}

export interface PoolOptions {
  readonly size: number;
  /** All that may be asked for. */
  readonly templates: readonly string[];
  /** Always kept warm; others only while they are asked for. */
  readonly template: string;
  readonly flavor: Flavor;
  readonly preload: readonly string[];
  readonly logger: Logger;
  readonly open: (template: string, signal: AbortSignal) => Promise<WarmInstance>;
  readonly discard: (pooled: WarmInstance) => Promise<void>;
  /** Whether the memory limits leave room for one more. */
  readonly hasCapacity: () => boolean;
  /** How long one may wait until it is replaced; absent: for ever. */
  readonly maxWaitMs?: ((template: string) => number | undefined) | undefined;
  readonly onFilled?: ((template: string, durationMs: number) => void) | undefined;
}

interface WarmInstances {
  readonly waiting: WarmInstance[];
  opening: number;
}

/** Places that are started and warm before anybody asks. */
export class Pool {
  readonly #options: PoolOptions;
  readonly #shelves: ReadonlyMap<string, WarmInstances>;
  readonly #claims: { readonly template: string; readonly atMs: number }[] = [];
  readonly #stopping = new AbortController();
  readonly #work = new Set<Promise<void>>();
  #pauseMs = FIRST_PAUSE_MS;
  #timer: NodeJS.Timeout | undefined;
  #afterClaim: NodeJS.Timeout | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#shelves = new Map(options.templates.map((template) => [template, { waiting: [], opening: 0 }]));
  }

  get flavor(): Flavor {
    return this.#options.flavor;
  }

  /** Started and not claimed, those on their way included. */
  get count(): number {
    return [...this.#shelves.values()].reduce((sum, { waiting, opening }) => sum + waiting.length + opening, 0);
  }

  /** Of those that wait. */
  get folders(): string[] {
    return [...this.#shelves.values()].flatMap(({ waiting }) => waiting.map(({ plan }) => plan.folder));
  }

  waiting(template: string): number {
    return this.#shelf(template).waiting.length;
  }

  /** Starts what is missing, in the background. */
  refill(): void {
    if (this.#options.size === 0 || this.#stopping.signal.aborted || this.#timer !== undefined) return;
    for (const template of this.#shelves.keys()) {
      while (this.#isMissing(template)) this.#startOne(template);
    }
  }

  /** A warm place, at once, or nothing. */
  claim(template: string): WarmInstance | undefined {
    this.#claims.push({ template, atMs: performance.now() });
    let claimed: WarmInstance | undefined;
    do claimed = this.#shelf(template).waiting.shift();
    while (claimed !== undefined && claimed.instance.isOver);
    activeSpan()?.set("owlclaw.sandbox.warm", claimed !== undefined);
    // What comes next is for others.
    this.#afterClaim ??= untraced(() => setTimeout(this.#refillAfterClaim, REFILL_DELAY_MS).unref());
    return claimed;
  }

  /** Gives one up to make room; false when there is none. */
  async shed(): Promise<boolean> {
    for (const { waiting } of this.#shelves.values()) {
      const pooled = waiting.pop();
      if (pooled === undefined) continue;
      await this.#options.discard(pooled);
      return true;
    }
    return false;
  }

  async close(): Promise<void> {
    this.#stopping.abort(new Error("the pool is closed"));
    clearTimeout(this.#timer);
    clearTimeout(this.#afterClaim);
    await Promise.all(this.#work);
    const all = [...this.#shelves.values()].flatMap(({ waiting }) => waiting.splice(0));
    await Promise.all(all.map((pooled) => this.#options.discard(pooled)));
  }

  readonly #refillAfterClaim = (): void => {
    this.#afterClaim = undefined;
    this.refill();
  };

  #isMissing(template: string): boolean {
    const { waiting, opening } = this.#shelf(template);
    const there = waiting.length + opening;
    if (there >= this.#target(template) || !this.#options.hasCapacity()) return false;
    return [...this.#shelves.values()].reduce((sum, each) => sum + each.opening, 0) < OPEN_AT_ONCE;
  }

  #target(template: string): number {
    const since = performance.now() - DEMAND_WINDOW_MS;
    while ((this.#claims[0]?.atMs ?? since) < since) this.#claims.shift();
    const recent = this.#claims.filter((claim) => claim.template === template).length;
    const { size } = this.#options;
    return Math.min(Math.max(template === this.#options.template ? size : 0, recent), size * MAX_GROWTH);
  }

  #startOne(template: string): void {
    this.#shelf(template).opening += 1;
    this.#follow(this.#open(template));
  }

  /** Closing waits for it; what comes after it is for the pool to start. */
  #follow(doing: Promise<void>): void {
    const work = doing.finally(() => {
      this.#work.delete(work);
      this.refill();
    });
    this.#work.add(work);
  }

  async #open(template: string): Promise<void> {
    const startMs = performance.now();
    try {
      await this.#warm(template, await this.#options.open(template, this.#stopping.signal));
      this.#options.onFilled?.(template, performance.now() - startMs);
      this.#pauseMs = FIRST_PAUSE_MS;
    } catch (error) {
      this.#pause(error);
    } finally {
      this.#shelf(template).opening -= 1;
    }
  }

  async #warm(template: string, pooled: WarmInstance): Promise<void> {
    const { language } = pooled.plan;
    const preload = language === "python" ? this.#options.preload : [];
    const signal = this.#stopping.signal;
    try {
      await pooled.instance.client.request("code.warm", { language, preload }, { timeoutMs: WARM_TIMEOUT_MS, signal });
      await rehearse(pooled, signal);
      signal.throwIfAborted();
    } catch (error) {
      await this.#options.discard(pooled);
      throw error;
    }
    this.#shelf(template).waiting.push(pooled);
    const drop = (): void => this.#drop(template, pooled);
    const maxWaitMs = this.#options.maxWaitMs?.(template);
    const tooLong = maxWaitMs === undefined ? undefined : setTimeout(drop, maxWaitMs).unref();
    void pooled.instance.ended.then(drop).finally(() => clearTimeout(tooLong));
  }

  /** One that died while it waited, or waited for too long, leaves room for another. */
  #drop(template: string, pooled: WarmInstance): void {
    const { waiting } = this.#shelf(template);
    const at = waiting.indexOf(pooled);
    if (at === -1) return;
    waiting.splice(at, 1);
    this.#follow(this.#options.discard(pooled).catch((error: unknown) => this.#pause(error)));
    this.refill();
  }

  #shelf(template: string): WarmInstances {
    const shelf = this.#shelves.get(template);
    if (shelf === undefined) throw new OwlError("internal", `the pool knows no template ${JSON.stringify(template)}`);
    return shelf;
  }

  /** Trying again at once would turn one problem into a storm. */
  #pause(error: unknown): void {
    if (this.#stopping.signal.aborted) return;
    this.#options.logger.warning("the warm pool could not be filled", { error, next_try_ms: this.#pauseMs });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.refill();
    }, this.#pauseMs);
    this.#timer.unref();
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

/**
 * The first command in a guest takes milliseconds longer than the second, since nothing of it has run yet. One that does
 * nothing leaves nothing behind; whether it works is for real calls to tell. Code rehearses inside, when it is warmed.
 */
async function rehearse({ instance: { client } }: WarmInstance, signal: AbortSignal): Promise<void> {
  const { callId, stop } = client.listen(() => undefined);
  const params = { callId, command: ":", background: false, timeoutMs: REHEARSAL_MS, maxOutputChars: 1 };
  try {
    for (let times = 0; times < REHEARSALS; times += 1) {
      await client.request("shell.exec", params, { timeoutMs: WARM_TIMEOUT_MS, signal });
    }
  } catch (error) {
    if (!(error instanceof OwlError)) throw error;
  } finally {
    stop();
  }
}
