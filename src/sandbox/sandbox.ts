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

/** Added to the time-out of a call: the guest ends its processes and answers. */
const ANSWER_MARGIN_MS = 10_000;
/** Added to the time-out of a browser call: the browser may have to be started, or a hanging page to be closed. */
const BROWSER_MARGIN_MS = 100_000;
/** The time limit of an operator's shell. */
const TERMINAL_MS = 86_400_000;

export type SandboxState = "create" | "ready" | "busy" | "stopped";

interface SandboxFacts {
  readonly id: string;
  readonly ownerId: string;
  /** The MCP session that made it, if any. */
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
  /** The first start; an instance of the warm pool resolves at once. */
  readonly open: (signal: AbortSignal) => Promise<ConnectedInstance>;
  readonly pauses: StartPauses;
  readonly logger: Logger;
  readonly keepWorkspace: boolean;
  /** Receives the duration of the first request. */
  readonly onFirstResult?: (durationMs: number) => void;
  /** Stores the content of files at the start, when the workspace is a mounted folder and the dashboard shows changes. */
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
  /** The id for input and size. */
  readonly onOpen: (callId: string) => void;
}

/** A sandbox with an owner and a lifetime. It runs one instance at a time and starts another on the same files when that ends. Calls may be concurrent. */
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
  /** It was started again, and no result has reported that yet. */
  #hasUnreportedRestart = false;
  readonly #starter = new Set<ConnectedInstance>();
  /** Set by an operator. */
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
      // `ready` reports the failure.
      () => undefined,
    );
  }

  get name(): string {
    return this.plan.instanceId;
  }

  /** The container of its latest instance. */
  get containerId(): string | undefined {
    return this.#instance?.containerId;
  }

  /** Network traffic of all its instances, both ways. */
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

  /** The files at the start; `undefined` unless they are stored. */
  get start(): Promise<WorkspaceStart | undefined> {
    return this.#start ?? Promise.resolve(undefined);
  }

  /** The name of its runtime. */
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
    return Math.min(this.maxAgeAtMs, Math.max(this.#lastUsedAtMs + idleMs, this.#extendedUntilMs));
  }

  /** When it ends, also while it is busy. */
  get maxAgeAtMs(): number {
    return Math.max(this.facts.createdAtMs + this.facts.maxAgeMs, this.#extendedUntilMs);
  }

  /** When the runtime ends its instance; `undefined`: never. */
  get lastsUntilMs(): number | undefined {
    return this.#instance?.isOver === false ? this.#instance.endsAtMs : undefined;
  }

  /** The operator that has taken it over; calls of its owner are refused meanwhile. */
  get takenOverBy(): string | undefined {
    return this.#takenOverBy;
  }

  /** It stays busy until it is given back: it is neither idle nor evicted. */
  takeOver(operator: string): void {
    if (this.#takenOverBy === undefined) this.acquire();
    this.#takenOverBy = operator;
  }

  giveBack(): void {
    if (this.#takenOverBy !== undefined) this.release();
    this.#takenOverBy = undefined;
  }

  /** @throws OwlError while an operator has taken it over. */
  assertNotTakenOver(): void {
    if (this.#takenOverBy === undefined) return;
    throw new OwlError("sandbox_taken_over", "an operator works in this sandbox at the moment");
  }

  /** Prolongs its lifetime beyond the configured maximum. */
  extend(untilMs: number): void {
    this.#extendedUntilMs = Math.max(this.#extendedUntilMs, untilMs);
  }

  /** CPU, memory and processes; `undefined` while it does not run. */
  async usage(): Promise<InstanceUsage | undefined> {
    if (!this.#isCreated || this.#closed !== undefined) return undefined;
    const instance = await this.#opening.catch(() => undefined);
    return instance === undefined || instance.isOver ? undefined : instance.usage();
  }

  /** Makes it busy until `release`. A busy sandbox ends only at its maximum age, by its owner, by an operator or with the server. */
  acquire(): void {
    this.#activeCalls += 1;
    this.#lastUsedAtMs = Date.now();
  }

  release(): void {
    this.#activeCalls -= 1;
    this.#lastUsedAtMs = Date.now();
  }

  /** Waits for the first start. The next call retries a later start that failed. */
  async ready(): Promise<void> {
    await this.#first;
  }

  /** Whether it was started again since the last result that reported a restart. */
  takeRestart(): boolean {
    const isUnreported = this.#hasUnreportedRestart;
    this.#hasUnreportedRestart = false;
    return isUnreported;
  }

  /** Runs code or a command with a time-out. Code of one language runs serially; its time-out starts when it runs. */
  runTimed<M extends Timed>(
    method: M,
    params: Omit<GuestParams[M], "callId">,
    options: CallOptions = {},
  ): Promise<GuestResult<M>> {
    const run = (): Promise<GuestResult<M>> =>
      this.#withInstance(async ({ client }) => {
        const { callId, stop } = client.listen(options.onOutput ?? (() => undefined));
        // oxlint-disable-next-line typescript/consistent-type-assertions -- the compiler does not join Omit and the field
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

  /** Runs a shell for an operator until it ends or `signal` aborts. */
  runTerminal(size: TerminalSize, { signal, onOutput, onOpen }: TerminalOptions): Promise<GuestResult<"terminal.run">> {
    return this.#withInstance(({ client }) => {
      const { callId, stop } = client.listen(onOutput, Number.POSITIVE_INFINITY);
      onOpen(callId);
      return client.request("terminal.run", { ...size, callId }, { timeoutMs: TERMINAL_MS, signal }).finally(stop);
    });
  }

  /** Sends a request to the browser. Requests run serially; the time-out starts when one runs. */
  browse<M extends BrowserMethod>(method: M, params: GuestParams[M], { signal }: CallOptions): Promise<GuestResult<M>> {
    const timeoutMs = params.timeoutMs + BROWSER_MARGIN_MS;
    return this.#browserQueue.run(() => this.request(method, params, { timeoutMs, signal }), signal);
  }

  /** Stops the instance and removes the workspace; returns whether all of it is gone. May be called twice. */
  close(): Promise<boolean> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  /** Runs after the first start, before the first request. */
  async #readStart(store: TextStore): Promise<WorkspaceStart | undefined> {
    const instance = await this.#first.catch(() => undefined);
    return instance && readStart(instance.client, { store, signal: this.#stopping.signal });
  }

  async #withInstance<T>(use: (instance: ConnectedInstance) => Promise<T>): Promise<T> {
    const running = await this.#running();
    // The files are read before a call can change them.
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

  /** Starts another instance on the same workspace, once for all waiting calls. The next call retries a start that fails. */
  async #restart(opening: Promise<ConnectedInstance>, over: ConnectedInstance | undefined): Promise<Running> {
    const reason = over === undefined ? "it could not be started" : await over.ended;
    if (this.#stopping.signal.aborted) throw stoppedError();
    if (this.#opening === opening) {
      const { pauses, logger } = this.#options;
      const owner = pausedOwner(this.facts);
      logger.warning("sandbox is started again", {
        sandbox: this.plan.instanceId,
        reason,
        violations: pauses.violations(owner),
        pause_ms: Math.round(pauses.leftMs(owner)),
      });
      this.#hasUnreportedRestart = true;
      this.#opening = this.#afterPause((signal) => this.#options.starter.open(this.plan, signal));
    }
    const fresh = this.#opening;
    this.#instance = await fresh;
    return { opening: fresh, instance: this.#instance };
  }

  /** Starts after the pause of the owner, and counts violations of the guest. */
  async #afterPause(open: (signal: AbortSignal) => Promise<ConnectedInstance>): Promise<ConnectedInstance> {
    const { pauses, facts } = this.#options;
    const owner = pausedOwner(facts);
    // Without a pause, a warm instance is used in the same turn of the event loop.
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
    this.#hasUnreportedRestart = false;
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

/** Runs tasks serially. A task whose signal aborts before its turn is skipped. */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const turn = this.#tail.then(() => {
      signal?.throwIfAborted();
      return task();
    });
    // A failed task does not stop the next one.
    this.#tail = turn.catch(() => undefined);
    return turn;
  }
}
