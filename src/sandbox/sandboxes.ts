import { ANONYMOUS } from "../auth/principal.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { sessionDigest } from "../telemetry/session-digest.ts";
import { DefaultSandboxes } from "./default-sandboxes.ts";
import { type EndedSandbox, EndedSandboxes, replacedNote } from "./ended-sandboxes.ts";
import type { Network, Place, PlaceParts, PlacePlan, Places } from "./place.ts";
import type { Pool } from "./pool.ts";
import { missingSandbox } from "./missing-sandbox.ts";
import { once } from "./run-once.ts";
import type { SandboxCaller, SandboxWish } from "./sandbox-wish.ts";
import { SandboxRoom, type SandboxRoomOptions } from "./sandbox-room.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";
import { type SandboxSummary, toSummary } from "./sandbox-summary.ts";
import { type SandboxTimes, StartClock } from "./sandbox-times.ts";
import { narrowed, type Sharing } from "./narrowed-network.ts";
import { newSessionId } from "./session-name.ts";
import { pausedOwner, StartPauses } from "./start-pauses.ts";

/** The right to use a sandbox for one call. Until `release` it is busy. */
export interface Lease {
  readonly sandbox: Sandbox;
  readonly wasCreated: boolean;
  /** What the caller must know about it, such as that it is empty. */
  readonly note: string | undefined;
  release(): void;
}

export interface Ground {
  readonly places: Places;
  readonly pool: Pool;
}

export interface SandboxesOptions extends Omit<SandboxRoomOptions, "defaults">, Pick<Sharing, "sharesVolumes"> {
  readonly logger: Logger;
  /** As configured; `idleMs` and `maxAgeMs` are also the most that a caller may wish for. */
  readonly defaults: Omit<PlaceParts, "network"> & { readonly idleMs: number; readonly maxAgeMs: number };
  /** What sandboxes of a template may reach; the same object each time. */
  readonly networkOf: (template: string) => Network;
  readonly autoCreate: boolean;
  readonly keepWorkspaces: boolean;
  /** Where workspaces are folders of the host, and operators may ask what was changed there. */
  readonly startTexts: SandboxOptions["startTexts"];
  /** Where several servers share the load: ids of sandboxes begin with it. */
  readonly serverId?: string | undefined;
  readonly times?: SandboxTimes | undefined;
  readonly onEnded?: ((cellId: string, why: string) => void) | undefined;
  /** The runtime and the pool, started once; rejects with what keeps sandboxes from running here. */
  readonly ground: () => Promise<Ground>;
}

const MIN_SWEEP_MS = 100;
const MAX_SWEEP_MS = 15_000;

/** All sandboxes of this server, and the rules of their lives. */
export class Sandboxes {
  readonly room: SandboxRoom;
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
    this.room = new SandboxRoom(options, this.#live);
    const { idleMs, maxAgeMs } = options.defaults;
    const everyMs = Math.min(MAX_SWEEP_MS, Math.max(MIN_SWEEP_MS, Math.min(idleMs, maxAgeMs) / 10));
    this.#sweeper = setInterval(() => this.#sweep(), everyMs);
    this.#sweeper.unref();
  }

  /** The sandbox named, or the default one of the caller's MCP session. */
  async open(caller: SandboxCaller, id: string | undefined, wish: SandboxWish = {}): Promise<Lease> {
    const ground = await this.#options.ground();
    const known = id === undefined ? this.#defaults.find(caller, wish) : this.#live.get(id);
    if (known === undefined || !this.#isUsable(known)) await this.room.measureDisk(ground.pool);
    if (id !== undefined) return this.#openById(ground, caller, id);
    const usual = this.#defaults.find(caller, wish);
    if (usual !== undefined && this.#isUsable(usual)) return this.#lease(usual, { wasCreated: false });
    if (!this.#options.autoCreate) {
      throw new OwlError(
        "session_not_found",
        "no session_id was given, and sandboxes are not made by themselves here",
        {
          hint: "call sandbox_create first and pass its session_id",
        },
      );
    }
    const note = replacedNote(this.#defaults.whyEnded(caller, wish), "under a new id", this.#options);
    return this.#lease(this.#create(ground, caller, wish), { wasCreated: true, note });
  }

  /** The caller's own while it lives. One that has ended is not made again: whoever wants to read finds nothing in it. */
  async openLive({ principal }: SandboxCaller, id: string): Promise<Lease> {
    const sandbox = this.#live.get(id);
    if (sandbox?.facts.ownerId !== principal.id || !this.#isUsable(sandbox))
      throw missingSandbox(id, this.#options.serverId, this.#ended.find(id, principal.id, Date.now())?.why);
    return this.#lease(sandbox, { wasCreated: false });
  }

  /** A new one. It becomes the default sandbox of the MCP session. */
  async create(caller: SandboxCaller, wish: SandboxWish): Promise<Lease> {
    const ground = await this.#options.ground();
    await this.room.measureDisk(ground.pool);
    return this.#lease(this.#create(ground, caller, wish), { wasCreated: true });
  }

  /** The caller's own; for anonymous callers, those that the same MCP session made. */
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
   * Stops and removes it, running calls included; its id is never good again. Without an id: the session's default. `isGone`: not
   * where its files could not be removed so far.
   */
  async destroy(caller: SandboxCaller, asked: string | undefined): Promise<{ id: string; isGone: boolean }> {
    const ownerId = caller.principal.id;
    const id = asked ?? this.#defaults.find(caller, {})?.facts.id ?? "";
    const sandbox = this.#live.get(id);
    if (sandbox !== undefined && sandbox.facts.ownerId === ownerId) {
      sandbox.assertOwners();
      return { id, isGone: await this.#end(sandbox, "destroyed") };
    }
    if (this.#ended.take(id, ownerId, Date.now()) === undefined) throw missingSandbox(id, this.#options.serverId);
    return { id, isGone: true };
  }

  /** For the operator, who knows sandboxes by the name of their cell. */
  findCell(cellId: string): Sandbox | undefined {
    return [...this.#live.values()].find(({ plan }) => plan.cellId === cellId);
  }

  /** Keeps it busy for an operator, also while one has taken it over. */
  async leaseCell(cellId: string): Promise<Lease | undefined> {
    const sandbox = this.findCell(cellId);
    return sandbox && this.#hold(sandbox, { wasCreated: false });
  }

  /** The one that a call means, with an id or without. For those who stand above owners: no call of a client gets here. */
  findMeant(id: string | undefined, caller: SandboxCaller | undefined): Sandbox | undefined {
    return id === undefined ? caller && this.#defaults.find(caller, {}) : this.#live.get(id);
  }

  /** Destroys it, or stops it: then its owner's next call starts a new, empty one under the same id. */
  async endCell(cellId: string, how: "destroyed" | "stopped"): Promise<boolean> {
    const sandbox = this.findCell(cellId);
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

  #openById(ground: Ground, caller: SandboxCaller, id: string): Promise<Lease> {
    const ownerId = caller.principal.id;
    const sandbox = this.#live.get(id);
    if (sandbox !== undefined && sandbox.facts.ownerId === ownerId) {
      if (this.#isUsable(sandbox)) return this.#lease(sandbox, { wasCreated: false });
      void this.#end(sandbox, whyOver(sandbox) ?? "it was stopped");
    }
    const ended = this.#ended.find(id, ownerId, Date.now());
    if (ended === undefined) throw missingSandbox(id, this.#options.serverId);
    const note = replacedNote(ended.why, "under the same id", this.#options);
    const replaced = this.#recreate(ground, caller, ended);
    // Only now: when there is no room, the id stays good for another try.
    this.#ended.take(id, ownerId, Date.now());
    return this.#lease(replaced, { wasCreated: true, note });
  }

  /** Between two sweeps one may be over its time already. */
  #isUsable(sandbox: Sandbox): boolean {
    return sandbox.state !== "stopped" && whyOver(sandbox) === undefined;
  }

  async #lease(sandbox: Sandbox, told: Told): Promise<Lease> {
    sandbox.assertOwners();
    return this.#hold(sandbox, told);
  }

  async #hold(sandbox: Sandbox, { wasCreated, note }: Told): Promise<Lease> {
    sandbox.acquire();
    try {
      await sandbox.ready();
    } catch (error) {
      sandbox.release();
      throw error;
    }
    return { sandbox, wasCreated, note, release: once(() => sandbox.release()) };
  }

  #create(ground: Ground, caller: SandboxCaller, wish: SandboxWish): Sandbox {
    const { defaults } = this.#options;
    const template = wish.template ?? defaults.template;
    const usualNetwork = this.#options.networkOf(template);
    const plan = ground.places.plan({
      template,
      flavor: wish.flavor ?? defaults.flavor,
      env: { ...defaults.env, ...wish.env },
      volumes: defaults.volumes,
      network: narrowed(usualNetwork, wish, this.#options),
    });
    const isUsual = Object.keys(wish.env ?? {}).length === 0 && plan.network === usualNetwork;
    return this.#register(ground, caller, {
      id: newSessionId(this.#options.serverId),
      ownerId: caller.principal.id,
      plan,
      labels: wish.labels ?? {},
      idleMs: Math.min(wish.idleMs ?? defaults.idleMs, defaults.idleMs),
      maxAgeMs: Math.min(wish.maxAgeMs ?? defaults.maxAgeMs, defaults.maxAgeMs),
      isUsual,
    });
  }

  #recreate(ground: Ground, caller: SandboxCaller, ended: EndedSandbox): Sandbox {
    const { template, flavor, env, volumes, network } = ended.plan;
    const plan = ground.places.plan({ template, flavor, env, volumes, network });
    return this.#register(ground, caller, { ...ended, plan, isUsual: false });
  }

  /** Everything that counts happens before the first wait, so that two callers at once cannot take the same room. */
  #register(ground: Ground, caller: SandboxCaller, seed: Seed): Sandbox {
    if (this.#isClosed) throw new OwlError("shutting_down", "the server is stopping");
    const { logger, keepWorkspaces: keepWorkspace, startTexts } = this.#options;
    const { id, ownerId, labels, idleMs, maxAgeMs } = seed;
    const { flavor } = seed.plan;
    const evicted = this.room.makeFor(ground.places, { ownerId, plan: seed.plan });
    const closing = evicted.map(({ occupant, why }) => this.#end(occupant.sandbox, why));
    const facts = { id, ownerId, mcpSessionId: caller.sessionId, labels, createdAtMs: Date.now(), idleMs, maxAgeMs };
    // A warm one would wait for the end of the owner's pause, and nobody else could have it.
    const isPaused = this.#pauses.leftMs(pausedOwner(facts)) > 0;
    const isWarmFit = seed.isUsual && flavor === ground.pool.flavor && !isPaused;
    const pooled = isWarmFit ? ground.pool.claim(seed.plan.template) : undefined;
    const plan = pooled?.plan ?? seed.plan;
    const { cellId, template } = plan;
    const clock = new StartClock(this.#options.times, { template, isWarm: pooled !== undefined });
    const sandbox = new Sandbox({
      facts,
      plan,
      places: ground.places,
      pauses: this.#pauses,
      open: (signal) =>
        pooled === undefined ? this.#openPlace(ground, { plan, closing, signal }) : Promise.resolve(pooled.place),
      onFirstResult: (durationMs) => clock.firstResult(durationMs),
      logger,
      keepWorkspace,
      startTexts,
    });
    this.#live.set(id, sandbox);
    this.#defaults.set(caller, sandbox);
    const created = { sandbox: cellId, session: sessionDigest(id), principal: ownerId, template, flavor };
    sandbox.ready().then(
      () => {
        logger.info("sandbox created", { ...created, warm: pooled !== undefined, container: sandbox.containerId });
        clock.isReady();
      },
      () => this.#end(sandbox, "destroyed: it could not be started"),
    );
    return sandbox;
  }

  async #openPlace(
    { places, pool }: Ground,
    { plan, closing, signal }: { plan: PlacePlan; closing: readonly Promise<unknown>[]; signal: AbortSignal },
  ): Promise<Place> {
    await Promise.all(closing);
    const isCrowded = (): boolean => pool.count > 0 && !this.room.hasFor(places, pool.count, pool.flavor);
    while (isCrowded() && (await pool.shed()));
    return places.open(plan, signal);
  }

  #sweep(): void {
    for (const sandbox of this.#live.values()) {
      const why = whyOver(sandbox);
      if (why !== undefined) void this.#end(sandbox, why);
    }
  }

  /** Returns whether nothing of it is left. */
  #end(sandbox: Sandbox, why: string): Promise<boolean> {
    const isOver = why.startsWith("destroyed") || why === "the server stops";
    this.#forget(sandbox, isOver ? undefined : why);
    const { id, ownerId, labels, idleMs, maxAgeMs } = sandbox.facts;
    if (!isOver)
      this.#ended.add({ id, ownerId, labels, idleMs, maxAgeMs, plan: sandbox.plan, endedAtMs: Date.now(), why });
    const { cellId } = sandbox.plan;
    const { logger, onEnded } = this.#options;
    onEnded?.(cellId, why);
    const ending = sandbox.close().then(
      (isGone) => {
        logger.info("sandbox ended", { sandbox: cellId, session: sessionDigest(id), principal: ownerId, reason: why });
        return isGone;
      },
      (error: unknown) => {
        logger.error("sandbox could not be cleared up", { sandbox: cellId, error });
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

type Told = Pick<Lease, "wasCreated"> & { readonly note?: string | undefined };

interface Seed extends Pick<EndedSandbox, "id" | "ownerId" | "plan" | "labels" | "idleMs" | "maxAgeMs"> {
  /** Nothing about it is special, so that a warm one will do. */
  readonly isUsual: boolean;
}

/** The maximum age holds for busy ones too: nobody lives for ever by calling without a pause. */
function whyOver({ isIdle, endsAtMs, oldAtMs }: Sandbox): string | undefined {
  const nowMs = Date.now();
  if (nowMs >= oldAtMs) return "it reached its maximum age";
  return isIdle && nowMs >= endsAtMs ? "it was idle for too long" : undefined;
}
