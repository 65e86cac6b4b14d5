import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Flavor } from "./flavors.ts";
import type { Place, PlacePlan } from "./place.ts";
import { type Template, TEMPLATES } from "./templates.ts";

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

export interface PooledPlace {
  readonly plan: PlacePlan;
  readonly place: Place;
}

export interface PoolOptions {
  readonly size: number;
  /** Always kept warm; others only while they are asked for. */
  readonly template: Template;
  readonly flavor: Flavor;
  readonly preload: readonly string[];
  readonly logger: Logger;
  readonly open: (template: Template, signal: AbortSignal) => Promise<PooledPlace>;
  readonly discard: (pooled: PooledPlace) => Promise<void>;
  /** Whether the memory limits leave room for one more. */
  readonly hasRoom: () => boolean;
}

/** Places that are started and warm before anybody asks. */
export class Pool {
  readonly #options: PoolOptions;
  readonly #waiting: Record<Template, PooledPlace[]> = { python: [], node: [] };
  readonly #claims: { readonly template: Template; readonly atMs: number }[] = [];
  readonly #stopping = new AbortController();
  readonly #work = new Set<Promise<void>>();
  readonly #opening: Record<Template, number> = { python: 0, node: 0 };
  #pauseMs = FIRST_PAUSE_MS;
  #timer: NodeJS.Timeout | undefined;
  #afterClaim: NodeJS.Timeout | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  get flavor(): Flavor {
    return this.#options.flavor;
  }

  /** Started and not claimed, those on their way included. */
  get count(): number {
    return templates().reduce((sum, template) => sum + this.#waiting[template].length + this.#opening[template], 0);
  }

  waiting(template: Template): number {
    return this.#waiting[template].length;
  }

  /** Starts what is missing, in the background. */
  refill(): void {
    if (this.#options.size === 0 || this.#stopping.signal.aborted || this.#timer !== undefined) return;
    for (const template of templates()) {
      while (this.#isMissing(template)) this.#startOne(template);
    }
  }

  /** A warm place, at once, or nothing. */
  claim(template: Template): PooledPlace | undefined {
    this.#claims.push({ template, atMs: performance.now() });
    let claimed: PooledPlace | undefined;
    do claimed = this.#waiting[template].shift();
    while (claimed !== undefined && claimed.place.isOver);
    this.#afterClaim ??= setTimeout(() => {
      this.#afterClaim = undefined;
      this.refill();
    }, REFILL_DELAY_MS).unref();
    return claimed;
  }

  /** Gives one up to make room; false when there is none. */
  async shed(): Promise<boolean> {
    for (const template of templates()) {
      const pooled = this.#waiting[template].pop();
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
    const all = templates().flatMap((template) => this.#waiting[template].splice(0));
    await Promise.all(all.map((pooled) => this.#options.discard(pooled)));
  }

  #isMissing(template: Template): boolean {
    const there = this.#waiting[template].length + this.#opening[template];
    if (there >= this.#target(template) || !this.#options.hasRoom()) return false;
    return templates().reduce((sum, each) => sum + this.#opening[each], 0) < OPEN_AT_ONCE;
  }

  #target(template: Template): number {
    const since = performance.now() - DEMAND_WINDOW_MS;
    while ((this.#claims[0]?.atMs ?? since) < since) this.#claims.shift();
    const recent = this.#claims.filter((claim) => claim.template === template).length;
    const { size } = this.#options;
    return Math.min(Math.max(template === this.#options.template ? size : 0, recent), size * MAX_GROWTH);
  }

  #startOne(template: Template): void {
    this.#opening[template] += 1;
    const work = this.#open(template).finally(() => {
      this.#work.delete(work);
      this.refill();
    });
    this.#work.add(work);
  }

  async #open(template: Template): Promise<void> {
    try {
      await this.#warm(template, await this.#options.open(template, this.#stopping.signal));
      this.#pauseMs = FIRST_PAUSE_MS;
    } catch (error) {
      this.#pause(error);
    } finally {
      this.#opening[template] -= 1;
    }
  }

  async #warm(template: Template, pooled: PooledPlace): Promise<void> {
    const { language } = TEMPLATES[template];
    const preload = language === "python" ? this.#options.preload : [];
    const signal = this.#stopping.signal;
    try {
      await pooled.place.client.request("code.warm", { language, preload }, { timeoutMs: WARM_TIMEOUT_MS, signal });
      await rehearse(pooled, signal);
      signal.throwIfAborted();
    } catch (error) {
      await this.#options.discard(pooled);
      throw error;
    }
    this.#waiting[template].push(pooled);
    void pooled.place.ended.then(() => this.#drop(template, pooled));
  }

  /** One that died while it waited leaves room for another. */
  #drop(template: Template, pooled: PooledPlace): void {
    const at = this.#waiting[template].indexOf(pooled);
    if (at === -1) return;
    this.#waiting[template].splice(at, 1);
    void this.#options.discard(pooled).catch((error: unknown) => this.#pause(error));
    this.refill();
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
async function rehearse({ place: { client } }: PooledPlace, signal: AbortSignal): Promise<void> {
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

function templates(): readonly Template[] {
  return ["python", "node"];
}
