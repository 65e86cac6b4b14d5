import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { activeSpan, untraced } from "../telemetry/tracing/active-span.ts";
import type { Flavor } from "./flavors.ts";
import type { ConnectedInstance, InstancePlan } from "./instance-starter.ts";

/** Claims within this time determine the size of the pool. */
const DEMAND_WINDOW_MS = 15_000;
/** Demand may raise the size up to this factor. */
const MAX_GROWTH = 4;
const WARM_TIMEOUT_MS = 60_000;
const REHEARSALS = 2;
const REHEARSAL_MS = 10_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
const OPEN_AT_ONCE = 2;
/** The call that claimed an instance runs first: a start at the same time would compete for the CPU. */
const REFILL_DELAY_MS = 60;

export interface WarmInstance {
  readonly plan: InstancePlan;
  readonly instance: ConnectedInstance;
}

export interface PoolOptions {
  readonly size: number;
  /** All templates. */
  readonly templates: readonly string[];
  /** Always kept warm; other templates only on demand. */
  readonly template: string;
  readonly flavor: Flavor;
  readonly preload: readonly string[];
  readonly logger: Logger;
  readonly open: (template: string, signal: AbortSignal) => Promise<WarmInstance>;
  readonly discard: (pooled: WarmInstance) => Promise<void>;
  /** Whether the limits allow one more. */
  readonly hasCapacity: () => boolean;
  /** How long an instance may wait until it is replaced; absent: without limit. */
  readonly maxWaitMs?: ((template: string) => number | undefined) | undefined;
  readonly onFilled?: ((template: string, durationMs: number) => void) | undefined;
}

interface TemplatePool {
  readonly waiting: WarmInstance[];
  opening: number;
}

/** The warm pool: instances that are started before they are needed. */
export class Pool {
  readonly #options: PoolOptions;
  readonly #byTemplate: ReadonlyMap<string, TemplatePool>;
  readonly #claims: { readonly template: string; readonly atMs: number }[] = [];
  readonly #stopping = new AbortController();
  readonly #work = new Set<Promise<void>>();
  #pauseMs = FIRST_PAUSE_MS;
  #timer: NodeJS.Timeout | undefined;
  #afterClaim: NodeJS.Timeout | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#byTemplate = new Map(options.templates.map((template) => [template, { waiting: [], opening: 0 }]));
  }

  get flavor(): Flavor {
    return this.#options.flavor;
  }

  /** Instances that are started or starting, and not claimed. */
  get count(): number {
    return [...this.#byTemplate.values()].reduce((sum, { waiting, opening }) => sum + waiting.length + opening, 0);
  }

  /** Folders of the waiting instances. */
  get folders(): string[] {
    return [...this.#byTemplate.values()].flatMap(({ waiting }) => waiting.map(({ plan }) => plan.folder));
  }

  waiting(template: string): number {
    return this.#of(template).waiting.length;
  }

  /** Starts missing instances in the background. */
  refill(): void {
    if (this.#options.size === 0 || this.#stopping.signal.aborted || this.#timer !== undefined) return;
    for (const template of this.#byTemplate.keys()) {
      while (this.#isMissing(template)) this.#startOne(template);
    }
  }

  /** Takes a warm instance, if there is one. */
  claim(template: string): WarmInstance | undefined {
    this.#claims.push({ template, atMs: performance.now() });
    let claimed: WarmInstance | undefined;
    do claimed = this.#of(template).waiting.shift();
    while (claimed !== undefined && claimed.instance.isOver);
    activeSpan()?.set("owlclaw.sandbox.warm", claimed !== undefined);
    // Untraced: the refill does not belong to the trace of this call.
    this.#afterClaim ??= untraced(() => setTimeout(this.#refillAfterClaim, REFILL_DELAY_MS).unref());
    return claimed;
  }

  /** Discards one instance to free its resources; false when there is none. */
  async shed(): Promise<boolean> {
    for (const { waiting } of this.#byTemplate.values()) {
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
    const all = [...this.#byTemplate.values()].flatMap(({ waiting }) => waiting.splice(0));
    await Promise.all(all.map((pooled) => this.#options.discard(pooled)));
  }

  readonly #refillAfterClaim = (): void => {
    this.#afterClaim = undefined;
    this.refill();
  };

  #isMissing(template: string): boolean {
    const { waiting, opening } = this.#of(template);
    const there = waiting.length + opening;
    if (there >= this.#target(template) || !this.#options.hasCapacity()) return false;
    return [...this.#byTemplate.values()].reduce((sum, each) => sum + each.opening, 0) < OPEN_AT_ONCE;
  }

  #target(template: string): number {
    const since = performance.now() - DEMAND_WINDOW_MS;
    while ((this.#claims[0]?.atMs ?? since) < since) this.#claims.shift();
    const recent = this.#claims.filter((claim) => claim.template === template).length;
    const { size } = this.#options;
    return Math.min(Math.max(template === this.#options.template ? size : 0, recent), size * MAX_GROWTH);
  }

  #startOne(template: string): void {
    this.#of(template).opening += 1;
    this.#follow(this.#open(template));
  }

  /** `close` waits for this work. */
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
      this.#of(template).opening -= 1;
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
    this.#of(template).waiting.push(pooled);
    const drop = (): void => this.#drop(template, pooled);
    const maxWaitMs = this.#options.maxWaitMs?.(template);
    const tooLong = maxWaitMs === undefined ? undefined : setTimeout(drop, maxWaitMs).unref();
    void pooled.instance.ended.then(drop).finally(() => clearTimeout(tooLong));
  }

  /** Discards an instance that ended while it waited, or waited for too long. */
  #drop(template: string, pooled: WarmInstance): void {
    const { waiting } = this.#of(template);
    const at = waiting.indexOf(pooled);
    if (at === -1) return;
    waiting.splice(at, 1);
    this.#follow(this.#options.discard(pooled).catch((error: unknown) => this.#pause(error)));
    this.refill();
  }

  #of(template: string): TemplatePool {
    const instances = this.#byTemplate.get(template);
    if (instances === undefined) throw new OwlError("internal", `the pool has no template ${JSON.stringify(template)}`);
    return instances;
  }

  /** Retries after a growing pause. */
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
 * Runs an empty command: the first command in a guest takes milliseconds longer than later ones. A failure is ignored. `code.warm`
 * does the same for code.
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
