import { ANONYMOUS } from "../auth/principal.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { sessionDigest } from "../telemetry/redact.ts";
import { DefaultSandboxes } from "./default-sandboxes.ts";
import { type EndedSandbox, EndedSandboxes, replacedNote, missingSandbox } from "./ended-sandboxes.ts";
import type { Network, ConnectedInstance, InstanceOptions, InstancePlan, InstanceStarter } from "./instance-starter.ts";
import type { Pool } from "./pool.ts";
import { type SandboxCaller, type SandboxRequest, narrowed, type Sharing, newSessionId } from "./sandbox-request.ts";
import { SandboxCapacity, type SandboxCapacityOptions } from "./capacity.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";
import { type SandboxSummary, toSummary } from "./sandbox-summary.ts";
import { type SandboxTimes, StartClock } from "./sandbox-times.ts";
import { pausedOwner, StartPauses } from "./start-pauses.ts";

const MIN_SWEEP_MS = 100;
const MAX_SWEEP_MS = 15_000;

/** The use of a sandbox by one call. Until `release` the sandbox is busy. */
export interface SandboxUse {
  readonly sandbox: Sandbox;
  readonly wasCreated: boolean;
  /** For the result: for example that the sandbox is empty. */
  readonly note: string | undefined;
  release(): void;
}

export interface SandboxRuntime {
  readonly starter: InstanceStarter;
  readonly pool: Pool;
}

export interface SandboxesOptions extends Omit<SandboxCapacityOptions, "defaults">, Pick<Sharing, "sharesVolumes"> {
  readonly logger: Logger;
  /** As configured; `idleMs` and `maxAgeMs` are also the maximum for requests. */
  readonly defaults: Omit<InstanceOptions, "network"> & { readonly idleMs: number; readonly maxAgeMs: number };
  /** The network of a template; the same object each time. */
  readonly networkOf: (template: string) => Network;
  readonly autoCreate: boolean;
  readonly keepWorkspaces: boolean;
  /** Set when workspaces are folders of the host and the dashboard shows changes. */
  readonly startTexts: SandboxOptions["startTexts"];
  /** In a cluster: the prefix of session ids. */
  readonly serverId?: string | undefined;
  readonly times?: SandboxTimes | undefined;
  readonly onEnded?: ((instanceId: string, why: string) => void) | undefined;
  /** Starts the runtime and the warm pool once; rejects with the reason why sandboxes cannot run here. */
  readonly runtime: () => Promise<SandboxRuntime>;
}

/** All sandboxes of this server and their lifetimes. */
export class Sandboxes {
  readonly capacity: SandboxCapacity;
  readonly #options: SandboxesOptions;
  readonly #live = new Map<string, Sandbox>();
  readonly #ended = new EndedSandboxes();
  readonly #defaults = new DefaultSandboxes();
  readonly #closing = new Set<Promise<unknown>>();
  readonly #pauses = new StartPauses();
  readonly #sweeper: NodeJS.Timeout;
  #isClosed = false;

  constructor(options: SandboxesOptions) {
    this.#options = options;
    this.capacity = new SandboxCapacity(options, this.#live);
    const { idleMs, maxAgeMs } = options.defaults;
    const everyMs = Math.min(MAX_SWEEP_MS, Math.max(MIN_SWEEP_MS, Math.min(idleMs, maxAgeMs) / 10));
    this.#sweeper = setInterval(() => this.#sweep(), everyMs);
    this.#sweeper.unref();
  }

  /** The sandbox with this id, or the default sandbox of the caller's MCP session. */
  async open(caller: SandboxCaller, id: string | undefined, request: SandboxRequest = {}): Promise<SandboxUse> {
    const runtime = await this.#options.runtime();
    const known = id === undefined ? this.#defaults.find(caller, request) : this.#live.get(id);
    if (known === undefined || !this.#isUsable(known)) await this.capacity.measureDisk(runtime.pool);
    if (id !== undefined) return this.#openById(runtime, caller, id);
    const usual = this.#defaults.find(caller, request);
    if (usual !== undefined && this.#isUsable(usual)) return this.#use(usual, { wasCreated: false });
    if (!this.#options.autoCreate) {
      throw new OwlError(
        "session_not_found",
        "no session_id was given, and this server does not create sandboxes automatically",
        {
          hint: "call sandbox_create first and pass its session_id",
        },
      );
    }
    const note = replacedNote(this.#defaults.whyEnded(caller, request), "under a new id", this.#options);
    return this.#use(this.#create(runtime, caller, request), { wasCreated: true, note });
  }

  /** The caller's sandbox. One that has ended is not replaced by an empty one, which has nothing to read. */
  async openLive({ principal }: SandboxCaller, id: string): Promise<SandboxUse> {
    const sandbox = this.#live.get(id);
    if (sandbox?.facts.ownerId !== principal.id || !this.#isUsable(sandbox))
      throw missingSandbox(id, this.#options.serverId, this.#ended.find(id, principal.id, Date.now())?.why);
    return this.#use(sandbox, { wasCreated: false });
  }

  /** Creates a sandbox, which becomes the default of the MCP session. */
  async create(caller: SandboxCaller, request: SandboxRequest): Promise<SandboxUse> {
    const runtime = await this.#options.runtime();
    await this.capacity.measureDisk(runtime.pool);
    return this.#use(this.#create(runtime, caller, request), { wasCreated: true });
  }

  /** The caller's sandboxes; for anonymous callers, those of the same MCP session. */
  list({ principal, sessionId }: SandboxCaller): SandboxSummary[] {
    const isMine = ({ facts }: Sandbox): boolean =>
      facts.ownerId === principal.id &&
      (principal.id !== ANONYMOUS.id || (sessionId !== undefined && facts.mcpSessionId === sessionId));
    return [...this.#live.values()].filter(isMine).map(toSummary);
  }

  listAll(): SandboxSummary[] {
    return [...this.#live.values()].map(toSummary);
  }

  /**
   * Stops and removes it, including running calls; its id is never valid again. Without an id: the session's default. `isGone`:
   * whether its files are removed.
   */
  async destroy(caller: SandboxCaller, asked: string | undefined): Promise<{ id: string; isGone: boolean }> {
    const ownerId = caller.principal.id;
    const id = asked ?? this.#defaults.find(caller, {})?.facts.id ?? "";
    const sandbox = this.#live.get(id);
    if (sandbox !== undefined && sandbox.facts.ownerId === ownerId) {
      sandbox.assertNotTakenOver();
      return { id, isGone: await this.#end(sandbox, "destroyed") };
    }
    if (this.#ended.take(id, ownerId, Date.now()) === undefined) throw missingSandbox(id, this.#options.serverId);
    return { id, isGone: true };
  }

  /** For operators, which name a sandbox by its instance id. */
  findByInstance(instanceId: string): Sandbox | undefined {
    return [...this.#live.values()].find(({ plan }) => plan.instanceId === instanceId);
  }

  /** Use by an operator, also while one has taken it over. */
  async useByInstance(instanceId: string): Promise<SandboxUse | undefined> {
    const sandbox = this.findByInstance(instanceId);
    return sandbox && this.#acquire(sandbox, { wasCreated: false });
  }

  /** The sandbox that a call means. It does not check the owner: only operators may use it. */
  findMeant(id: string | undefined, caller: SandboxCaller | undefined): Sandbox | undefined {
    return id === undefined ? caller && this.#defaults.find(caller, {}) : this.#live.get(id);
  }

  /** Destroys or stops it. After a stop, the owner's next call starts a new, empty one under the same id. */
  async endInstance(instanceId: string, how: "destroyed" | "stopped"): Promise<boolean> {
    const sandbox = this.findByInstance(instanceId);
    if (sandbox === undefined) return false;
    await this.#end(sandbox, `${how} by the operator`);
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweeper);
    await Promise.all([...this.#live.values()].map((sandbox) => this.#end(sandbox, "the server stops")));
    await Promise.all(this.#closing);
  }

  #openById(runtime: SandboxRuntime, caller: SandboxCaller, id: string): Promise<SandboxUse> {
    const ownerId = caller.principal.id;
    const sandbox = this.#live.get(id);
    if (sandbox !== undefined && sandbox.facts.ownerId === ownerId) {
      if (this.#isUsable(sandbox)) return this.#use(sandbox, { wasCreated: false });
      void this.#end(sandbox, whyOver(sandbox) ?? "it was stopped");
    }
    const ended = this.#ended.find(id, ownerId, Date.now());
    if (ended === undefined) throw missingSandbox(id, this.#options.serverId);
    const note = replacedNote(ended.why, "under the same id", this.#options);
    const replaced = this.#recreate(runtime, caller, ended);
    // Only now: when `#recreate` throws, the id stays valid for a retry.
    this.#ended.take(id, ownerId, Date.now());
    return this.#use(replaced, { wasCreated: true, note });
  }

  /** Between two sweeps, a sandbox may have exceeded its lifetime. */
  #isUsable(sandbox: Sandbox): boolean {
    return sandbox.state !== "stopped" && whyOver(sandbox) === undefined;
  }

  async #use(sandbox: Sandbox, notes: UseNotes): Promise<SandboxUse> {
    sandbox.assertNotTakenOver();
    return this.#acquire(sandbox, notes);
  }

  async #acquire(sandbox: Sandbox, { wasCreated, note }: UseNotes): Promise<SandboxUse> {
    sandbox.acquire();
    try {
      await sandbox.ready();
    } catch (error) {
      sandbox.release();
      throw error;
    }
    return { sandbox, wasCreated, note, release: once(() => sandbox.release()) };
  }

  #create(runtime: SandboxRuntime, caller: SandboxCaller, request: SandboxRequest): Sandbox {
    const { defaults } = this.#options;
    const template = request.template ?? defaults.template;
    const usualNetwork = this.#options.networkOf(template);
    const plan = runtime.starter.plan({
      template,
      flavor: request.flavor ?? defaults.flavor,
      env: { ...defaults.env, ...request.env },
      volumes: defaults.volumes,
      network: narrowed(usualNetwork, request, this.#options),
    });
    const isUsual = Object.keys(request.env ?? {}).length === 0 && plan.network === usualNetwork;
    return this.#register(runtime, caller, {
      id: newSessionId(this.#options.serverId),
      ownerId: caller.principal.id,
      plan,
      labels: request.labels ?? {},
      idleMs: Math.min(request.idleMs ?? defaults.idleMs, defaults.idleMs),
      maxAgeMs: Math.min(request.maxAgeMs ?? defaults.maxAgeMs, defaults.maxAgeMs),
      isUsual,
    });
  }

  #recreate(runtime: SandboxRuntime, caller: SandboxCaller, ended: EndedSandbox): Sandbox {
    const { template, flavor, env, volumes, network } = ended.plan;
    const plan = runtime.starter.plan({ template, flavor, env, volumes, network });
    return this.#register(runtime, caller, { ...ended, plan, isUsual: false });
  }

  /** Synchronous up to the registration: concurrent calls cannot take the same capacity. */
  #register(runtime: SandboxRuntime, caller: SandboxCaller, wanted: NewSandbox): Sandbox {
    if (this.#isClosed) throw new OwlError("shutting_down", "the server is stopping");
    const { logger, keepWorkspaces: keepWorkspace, startTexts } = this.#options;
    const { id, ownerId, labels, idleMs, maxAgeMs } = wanted;
    const { flavor } = wanted.plan;
    const evicted = this.capacity.evictionsFor(runtime.starter, { ownerId, plan: wanted.plan });
    const closing = evicted.map(({ occupant, why }) => this.#end(occupant.sandbox, why));
    const facts = { id, ownerId, mcpSessionId: caller.sessionId, labels, createdAtMs: Date.now(), idleMs, maxAgeMs };
    // A warm instance would only wait for the end of the owner's pause.
    const isPaused = this.#pauses.leftMs(pausedOwner(facts)) > 0;
    const isWarmFit = wanted.isUsual && flavor === runtime.pool.flavor && !isPaused;
    const pooled = isWarmFit ? runtime.pool.claim(wanted.plan.template) : undefined;
    const plan = pooled?.plan ?? wanted.plan;
    const { instanceId, template } = plan;
    const clock = new StartClock(this.#options.times, { template, isWarm: pooled !== undefined });
    const sandbox = new Sandbox({
      facts,
      plan,
      starter: runtime.starter,
      pauses: this.#pauses,
      open: (signal) =>
        pooled === undefined
          ? this.#openInstance(runtime, { plan, closing, signal })
          : Promise.resolve(pooled.instance),
      onFirstResult: (durationMs) => clock.firstResult(durationMs),
      logger,
      keepWorkspace,
      startTexts,
    });
    this.#live.set(id, sandbox);
    this.#defaults.set(caller, sandbox);
    const created = { sandbox: instanceId, session: sessionDigest(id), principal: ownerId, template, flavor };
    sandbox.ready().then(
      () => {
        logger.info("sandbox created", { ...created, warm: pooled !== undefined, container: sandbox.containerId });
        clock.isReady();
      },
      () => this.#end(sandbox, "destroyed: it could not be started"),
    );
    return sandbox;
  }

  async #openInstance(
    { starter, pool }: SandboxRuntime,
    { plan, closing, signal }: { plan: InstancePlan; closing: readonly Promise<unknown>[]; signal: AbortSignal },
  ): Promise<ConnectedInstance> {
    await Promise.all(closing);
    const isCrowded = (): boolean => pool.count > 0 && !this.capacity.fits(starter, pool.count, pool.flavor);
    while (isCrowded() && (await pool.shed()));
    return starter.open(plan, signal);
  }

  #sweep(): void {
    for (const sandbox of this.#live.values()) {
      const why = whyOver(sandbox);
      if (why !== undefined) void this.#end(sandbox, why);
    }
  }

  /** Returns whether everything of it is removed. */
  #end(sandbox: Sandbox, why: string): Promise<boolean> {
    const isOver = why.startsWith("destroyed") || why === "the server stops";
    this.#forget(sandbox, isOver ? undefined : why);
    const { id, ownerId, labels, idleMs, maxAgeMs } = sandbox.facts;
    if (!isOver)
      this.#ended.add({ id, ownerId, labels, idleMs, maxAgeMs, plan: sandbox.plan, endedAtMs: Date.now(), why });
    const { instanceId } = sandbox.plan;
    const { logger, onEnded } = this.#options;
    onEnded?.(instanceId, why);
    const ending = sandbox.close().then(
      (isGone) => {
        logger.info("sandbox ended", {
          sandbox: instanceId,
          session: sessionDigest(id),
          principal: ownerId,
          reason: why,
        });
        return isGone;
      },
      (error: unknown) => {
        logger.error("sandbox could not be cleared up", { sandbox: instanceId, error });
        return false;
      },
    );
    this.#closing.add(ending);
    void ending.finally(() => this.#closing.delete(ending));
    return ending;
  }

  #forget(sandbox: Sandbox, why: string | undefined): void {
    if (this.#live.get(sandbox.facts.id) === sandbox) this.#live.delete(sandbox.facts.id);
    this.#defaults.remove(sandbox, why);
  }
}

type UseNotes = Pick<SandboxUse, "wasCreated"> & { readonly note?: string | undefined };

interface NewSandbox extends Pick<EndedSandbox, "id" | "ownerId" | "plan" | "labels" | "idleMs" | "maxAgeMs"> {
  /** It has the configured environment and network, so an instance of the warm pool can be used. */
  readonly isUsual: boolean;
}

/** Why its lifetime is over. The maximum age also ends busy sandboxes. */
function whyOver({ isIdle, endsAtMs, maxAgeAtMs }: Sandbox): string | undefined {
  const nowMs = Date.now();
  if (nowMs >= maxAgeAtMs) return "it reached its maximum age";
  return isIdle && nowMs >= endsAtMs ? "it was idle for too long" : undefined;
}

/** An action that a second call does not repeat. */
function once(action: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    action();
  };
}
