import type {
  BrowserMethod,
  GuestMethod,
  GuestParams,
  GuestResult,
  Language,
  OnOutput,
  TerminalSize,
} from "../../contract/guest.ts";
import { OwlError, toOwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";
import { untraced } from "../telemetry/tracing/active-span.ts";
import { FirstResult } from "./sandbox-times.ts";
import { type RequestOptions, GuestLost } from "./guest-client.ts";
import type { ConnectedInstance, InstancePlan, InstanceStarter } from "./instance-starter.ts";
import type { InstanceUsage } from "./runtimes/runtime.ts";
import { pausedOwner, type StartPauses } from "./start-pauses.ts";
import { dropStart, readStart, type WorkspaceStart, type TextStore } from "./workspace-start.ts";

/** What the guest itself needs on top of the time it was given, to end things and to answer. */
const ANSWER_MARGIN_MS = 10_000;
/** A browser may have to be started first, and a page that hangs to be looked after. */
const BROWSER_MARGIN_MS = 100_000;
/** A person may sit before a shell for a day. */
const TERMINAL_MS = 86_400_000;

export type SandboxState = "create" | "ready" | "busy" | "stopped";

interface SandboxFacts {
  readonly id: string;
  readonly ownerId: string;
  /** The MCP session that made it, where there was one. */
  readonly mcpSessionId: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  /** Ends after this long without a call. */
  readonly idleMs: number;
  /** Ends at this time at the latest. */
  readonly maxAgeMs: number;
}

export interface SandboxOptions {
  readonly facts: SandboxFacts;
  readonly plan: InstancePlan;
  readonly starter: InstanceStarter;
  /** The first start; a place from the pool is there at once. */
  readonly open: (signal: AbortSignal) => Promise<ConnectedInstance>;
  readonly pauses: StartPauses;
  readonly logger: Logger;
  readonly keepWorkspace: boolean;
  /** Hears how long the first thing took that was done in it. */
  readonly onFirstResult?: (durationMs: number) => void;
  /** Where the workspace does not begin empty, and somebody will ask what has become of its files: keeps what was in them. */
  readonly startTexts: TextStore | undefined;
}

interface Running {
  readonly opening: Promise<ConnectedInstance>;
  readonly instance: ConnectedInstance;
}

type Timed = "code.run" | "shell.exec";

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onOutput?: OnOutput | undefined;
}

interface TerminalOptions {
  readonly signal: AbortSignal;
  readonly onOutput: OnOutput;
  /** Input and size go under this id. */
  readonly onOpen: (callId: string) => void;
}

/** One isolated place with an owner and a life of its own. Calls may come at the same time. */
export class Sandbox {
  readonly facts: SandboxFacts;
  readonly plan: InstancePlan;
  readonly #options: SandboxOptions;
  readonly #codeQueues: Readonly<Record<Language, SerialQueue>> = {
    python: new SerialQueue(),
    node: new SerialQueue(),
  };
  readonly #browserQueue = new SerialQueue();
  readonly #stopping = new AbortController();
  readonly #first: Promise<ConnectedInstance>;
  #opening: Promise<ConnectedInstance>;
  #isCreated = false;
  #activeCalls = 0;
  #lastUsedAtMs: number;
  #closed: Promise<boolean> | undefined;
  /** It was started again, and no result has said so yet. */
  #hasUntoldRestart = false;
  readonly #starter = new Set<ConnectedInstance>();
  /** What an operator has made of its life. */
  #extendedUntilMs = 0;
  #takenOverBy: string | undefined;
  readonly #start: Promise<WorkspaceStart | undefined> | undefined;
  #instance: ConnectedInstance | undefined;
  readonly #firstResult: FirstResult;

  constructor(options: SandboxOptions) {
    this.facts = options.facts;
    this.plan = options.plan;
    this.#options = options;
    this.#firstResult = new FirstResult(options.onFirstResult);
    this.#lastUsedAtMs = options.facts.createdAtMs;
    this.#first = this.#afterPause(options.open);
    this.#opening = this.#first;
    const { startTexts } = options;
    if (startTexts !== undefined) this.#start = untraced(() => this.#readStart(startTexts));
    void this.#opening.then(
      (instance) => {
        this.#isCreated = true;
        this.#instance = instance;
      },
      // Whoever made it waits for it too, and tells.
      () => undefined,
    );
  }

  get name(): string {
    return this.plan.instanceId;
  }

  /** Of its latest start, where that is a container. */
  get containerId(): string | undefined {
    return this.#instance?.containerId;
  }

  /** What all its starts have moved over the network, both ways. */
  get bytesMoved(): number {
    let sum = 0;
    for (const { bytesMoved } of this.#starter) sum += bytesMoved;
    return sum;
  }

  get state(): SandboxState {
    if (this.#closed !== undefined) return "stopped";
    if (!this.#isCreated) return "create";
    return this.#activeCalls > 0 ? "busy" : "ready";
  }

  /** Known where it is remembered. */
  get start(): Promise<WorkspaceStart | undefined> {
    return this.#start ?? Promise.resolve(undefined);
  }

  /** What isolates it. */
  get runtime(): string {
    return this.#options.starter.runtimeNameOf(this.plan.template);
  }

  get isIdle(): boolean {
    return this.#activeCalls === 0;
  }

  get lastUsedAtMs(): number {
    return this.#lastUsedAtMs;
  }

  get endsAtMs(): number {
    const { idleMs } = this.facts;
    return Math.min(this.oldAtMs, Math.max(this.#lastUsedAtMs + idleMs, this.#extendedUntilMs));
  }

  /** When it ends, however busy it is. */
  get oldAtMs(): number {
    return Math.max(this.facts.createdAtMs + this.facts.maxAgeMs, this.#extendedUntilMs);
  }

  /** When what it runs in ends by itself, however long it may live; nothing: never. */
  get lastsUntilMs(): number | undefined {
    return this.#instance?.isOver === false ? this.#instance.endsAtMs : undefined;
  }

  /** The operator who works in it; nobody else's calls are served meanwhile. */
  get takenOverBy(): string | undefined {
    return this.#takenOverBy;
  }

  /** It stays busy until it is given back: nothing ends it for being idle or for want of room. */
  takeOver(operator: string): void {
    if (this.#takenOverBy === undefined) this.acquire();
    this.#takenOverBy = operator;
  }

  giveBack(): void {
    if (this.#takenOverBy !== undefined) this.release();
    this.#takenOverBy = undefined;
  }

  /** @throws OwlError to everybody but the operator. */
  assertOwners(): void {
    if (this.#takenOverBy === undefined) return;
    throw new OwlError("sandbox_taken_over", "an operator works in this sandbox at the moment");
  }

  /** Lets it live longer than its owner may wish for, idle or not. */
  extend(untilMs: number): void {
    this.#extendedUntilMs = Math.max(this.#extendedUntilMs, untilMs);
  }

  /** What it uses of the machine; nothing while it is not running. */
  async usage(): Promise<InstanceUsage | undefined> {
    if (!this.#isCreated || this.#closed !== undefined) return undefined;
    const instance = await this.#opening.catch(() => undefined);
    return instance === undefined || instance.isOver ? undefined : instance.usage();
  }

  /** From here until `release` it is busy, and nothing but its owner or the server's end stops it. */
  acquire(): void {
    this.#activeCalls += 1;
    this.#lastUsedAtMs = Date.now();
  }

  release(): void {
    this.#activeCalls -= 1;
    this.#lastUsedAtMs = Date.now();
  }

  /** Waits until the guest has answered for the first time. A later start that failed is tried again by the next call. */
  async ready(): Promise<void> {
    await this.#first;
  }

  /** Whether it was started again since the last result that said so. */
  takeRestart(): boolean {
    const told = this.#hasUntoldRestart;
    this.#hasUntoldRestart = false;
    return told;
  }

  /** Runs code or a command with a time-out of its own. Code of one language waits for its turn; its time starts then. */
  runTimed<M extends Timed>(
    method: M,
    params: Omit<GuestParams[M], "callId">,
    options: CallOptions = {},
  ): Promise<GuestResult<M>> {
    const run = (): Promise<GuestResult<M>> =>
      this.#withInstance(async ({ client }) => {
        const { callId, stop } = client.listen(options.onOutput ?? (() => undefined));
        // oxlint-disable-next-line typescript/consistent-type-assertions -- the compiler does not put Omit and the field together again
        const whole = { ...params, callId } as GuestParams[M];
        const timeoutMs = whole.timeoutMs + ANSWER_MARGIN_MS;
        return client.request(method, whole, { timeoutMs, signal: options.signal }).finally(stop);
      });
    const language = "language" in params ? params.language : undefined;
    const first = (): Promise<GuestResult<M>> => this.#firstResult.of(run);
    if (language !== "python" && language !== "node") return first();
    return this.#codeQueues[language].run(first, options.signal);
  }

  request<M extends GuestMethod>(method: M, params: GuestParams[M], options: RequestOptions): Promise<GuestResult<M>> {
    return this.#firstResult.of(() => this.#withInstance(({ client }) => client.request(method, params, options)));
  }

  /** A shell for a person, until it ends or is no longer wanted. */
  runTerminal(size: TerminalSize, { signal, onOutput, onOpen }: TerminalOptions): Promise<GuestResult<"terminal.run">> {
    return this.#withInstance(({ client }) => {
      const { callId, stop } = client.listen(onOutput, Number.POSITIVE_INFINITY);
      onOpen(callId);
      return client.request("terminal.run", { ...size, callId }, { timeoutMs: TERMINAL_MS, signal }).finally(stop);
    });
  }

  /** Asks the browser. Calls wait for their turn, since each acts on what the one before left; their time starts then. */
  browse<M extends BrowserMethod>(method: M, params: GuestParams[M], { signal }: CallOptions): Promise<GuestResult<M>> {
    const timeoutMs = params.timeoutMs + BROWSER_MARGIN_MS;
    return this.#browserQueue.run(() => this.request(method, params, { timeoutMs, signal }), signal);
  }

  /** Stops everything in it and removes its workspace; returns whether all of it is gone. May be called twice. */
  close(): Promise<boolean> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  /** While whoever made the sandbox hears that it is there. */
  async #readStart(store: TextStore): Promise<WorkspaceStart | undefined> {
    const instance = await this.#first.catch(() => undefined);
    return instance && readStart(instance.client, { store, signal: this.#stopping.signal });
  }

  async #withInstance<T>(use: (instance: ConnectedInstance) => Promise<T>): Promise<T> {
    const running = await this.#running();
    // The files are read before anybody can change them.
    if (this.#start !== undefined) await this.#start;
    this.#starter.add(running.instance);
    try {
      return await use(running.instance);
    } catch (error) {
      if (!(error instanceof GuestLost)) throw error;
      throw await this.#lostDuringCall(running);
    }
  }

  async #running(): Promise<Running> {
    const opening = this.#opening;
    const instance = await opening.catch(() => undefined);
    if (instance !== undefined && !instance.isOver) return { opening, instance };
    return this.#restart(opening, instance);
  }

  /** Starts the same workspace again, once for everybody who waits. A start that fails is tried again at the next call. */
  async #restart(opening: Promise<ConnectedInstance>, over: ConnectedInstance | undefined): Promise<Running> {
    const reason = over === undefined ? "it could not be started" : await over.ended;
    if (this.#stopping.signal.aborted) throw stoppedError();
    if (this.#opening === opening) {
      const pauseMs = Math.round(this.#options.pauses.leftMs(pausedOwner(this.facts)));
      this.#options.logger.warning("sandbox is started again", {
        sandbox: this.plan.instanceId,
        reason,
        pause_ms: pauseMs,
      });
      this.#hasUntoldRestart = true;
      this.#opening = this.#afterPause((signal) => this.#options.starter.open(this.plan, signal));
    }
    const fresh = this.#opening;
    this.#instance = await fresh;
    return { opening: fresh, instance: this.#instance };
  }

  /** A start, and the record of what its guest does wrong. */
  async #afterPause(open: (signal: AbortSignal) => Promise<ConnectedInstance>): Promise<ConnectedInstance> {
    const { pauses, facts } = this.#options;
    const owner = pausedOwner(facts);
    // Without a pause to wait for, a warm sandbox is there in the same turn.
    if (pauses.leftMs(owner) > 0) await pauses.wait(owner, this.#stopping.signal);
    const instance = await open(this.#stopping.signal);
    void instance.ended.then(() => {
      if (instance.client.hasViolated) pauses.addViolation(owner);
    });
    return instance;
  }

  async #lostDuringCall({ opening, instance }: Running): Promise<OwlError> {
    const reason = await instance.ended;
    if (this.#stopping.signal.aborted) return stoppedError();
    try {
      await this.#restart(opening, instance);
    } catch (error) {
      return toOwlError(error);
    }
    this.#hasUntoldRestart = false;
    return new OwlError("tool_failure", `the sandbox ended while the call ran: ${reason}`, {
      hint: "it runs again on the same files; variables and processes are gone: repeat the set-up that the next call needs",
      facts: { reason: "sandbox_ended", sandbox_restarted: true },
    });
  }

  async #end(): Promise<boolean> {
    const { starter, keepWorkspace, startTexts } = this.#options;
    this.#stopping.abort(new Error("the sandbox is stopped"));
    const instance = await this.#opening.catch(() => undefined);
    await instance?.close();
    const start = await this.#start;
    if (start !== undefined && startTexts !== undefined) dropStart(start, startTexts);
    return keepWorkspace || (await starter.discard(this.plan));
  }
}

function stoppedError(): OwlError {
  return new OwlError("session_not_found", "the sandbox was stopped", {
    hint: "call sandbox_create for a new one, or leave session_id out",
  });
}

/** Runs one task after the other. A task whose caller is gone before its turn leaves the queue. */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const turn = this.#tail.then(() => {
      signal?.throwIfAborted();
      return task();
    });
    // The next task does not care how this one ended.
    this.#tail = turn.catch(() => undefined);
    return turn;
  }
}
