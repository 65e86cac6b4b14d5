import { OwlError, messageOf } from "../../errors/owl-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { LaunchedWorker, LaunchWorker, WorkerExit } from "./launch-process.ts";
import { RemoteCall, type RemoteCallOptions, type RemoteTarget, type UseSandbox } from "./remote-call.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Long enough that a worker on a busy machine is not taken for a blocked one. */
const LIVENESS_INTERVAL_MS = 200;
const MAX_FAILED_STARTS = 3;
const CLOSE_TIMEOUT_MS = 3000;

interface WorkerPoolOptions {
  readonly launch: LaunchWorker;
  readonly logger: Logger;
  /** How many workers are kept running; the second takes over when the first is blocked. */
  readonly size: number;
  readonly maxSize: number;
  /** A worker serves one client only, since processes that it started may outlive a call. */
  readonly isPerClient: boolean;
  readonly maxLineChars: number;
  readonly useSandbox?: UseSandbox | undefined;
  /** The code of a file, and of its imports, as they were when the file was described. */
  readonly sourcesOf: (file: string) => ReadonlyMap<string, string> | undefined;
  readonly onChanged: (remote: RemoteTarget) => void;
  readonly onListChanged: (list: string) => void;
  /** Another worker became the lead. Requests that one worker of the pool must serve are sent to it now. */
  readonly onLead: () => void;
}

/**
 * Workers that run the same code. All calls go to the first available one, so that calls share the memory of a file
 * as long as no worker fails; the others are on standby.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #workers: WorkerProcess[] = [];
  readonly #queue: RemoteCall[] = [];
  readonly #sources = new Map<string, string>();
  readonly #launches = new Set<Promise<void>>();
  readonly #clearings = new Set<Promise<void>>();
  #launching = 0;
  #failedStarts = 0;
  readonly #backoff = new RestartBackoff();
  #livenessTimer: NodeJS.Timeout | undefined;
  #lead: WorkerProcess | undefined;
  #closing: Promise<void> | undefined;
  /** retired: takes no new work and closes when it has none left. over: every process has exited. */
  #state: "serving" | "retired" | "closing" | "over" = "serving";

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#spawn();
  }

  /** Runs a job in one of the workers. */
  run(options: Pick<RemoteCallOptions, "job" | "context" | "refused">): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { job, context, refused } = options;
      this.#assign(new RemoteCall({ job, context, refused, useSandbox: this.#options.useSandbox, resolve, reject }));
    });
  }

  /** Workers that import these files from now on take these texts: the files are broken on disk. */
  keep(sources: ReadonlyMap<string, string>): void {
    for (const [file, text] of sources) this.#sources.set(file, text);
    for (const worker of this.#workers) worker.keep(sources);
  }

  /** Finishes its work and closes. */
  retire(): void {
    if (this.#state === "serving") this.#state = "retired";
    this.#closeIfDone();
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  get #isClosed(): boolean {
    return this.#state === "closing" || this.#state === "over";
  }

  async #close(): Promise<void> {
    this.#state = "closing";
    clearInterval(this.#livenessTimer);
    const error = new OwlError("shutting_down", "the server is stopping");
    for (const call of this.#queue.splice(0)) call.fail(error);
    const gone = Promise.all([...this.#workers.map((worker) => worker.close()), ...this.#launches]);
    const cleared = gone.then(() => Promise.all(this.#clearings));
    // A process that cannot be killed must not block the server's exit.
    const timeout = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref());
    await Promise.race([cleared, timeout]);
    this.#state = "over";
  }

  #assign(call: RemoteCall): void {
    if (call.isAbandoned) return call.fail(undefined);
    if (this.#isClosed) return call.fail(new OwlError("shutting_down", "the server is stopping"));
    const worker = this.#choose(call);
    if (worker === undefined) {
      this.#queue.push(call);
      this.#grow(call.client);
      return;
    }
    worker.dispatch(call);
    this.#livenessTimer ??= setInterval(this.#checkLiveness, LIVENESS_INTERVAL_MS).unref();
  }

  /** A file may change before the watcher sees it. When it cannot be loaded, the call is retried with the served code. */
  #tryAgain(call: RemoteCall): boolean {
    const { job, isSecondTry } = call;
    const sources = job.op === "describe" || isSecondTry ? undefined : this.#options.sourcesOf(job.remote.target.file);
    if (sources === undefined) return false;
    call.isSecondTry = true;
    this.keep(sources);
    this.#assign(call);
    return true;
  }

  #choose(call: RemoteCall): WorkerProcess | undefined {
    let second: WorkerProcess | undefined;
    for (const worker of this.#workers) {
      if (!worker.isAvailable || !this.#mayServe(worker, call)) continue;
      const isFree = call.isExclusive ? worker.size === 0 : !worker.hasExclusive;
      if (isFree) return worker;
      if (!worker.hasExclusive || !call.isExclusive) second ??= worker;
    }
    // Shares a worker with an exclusive call only when no other worker can be started.
    return this.#canGrow(call.client) ? undefined : second;
  }

  /** Jobs of the server run in a worker that has served no client: their results apply to all clients. */
  #mayServe({ client }: WorkerProcess, call: RemoteCall): boolean {
    return !this.#options.isPerClient || client === undefined || client === call.client;
  }

  readonly #checkLiveness = (): void => {
    // Messages that have arrived are read first, so that a busy server does not take its workers for stuck.
    setImmediate(() => {
      for (const worker of this.#workers) worker.checkLiveness();
      if (this.#workers.every(({ size }) => size === 0)) {
        clearInterval(this.#livenessTimer);
        this.#livenessTimer = undefined;
      }
    });
  };

  readonly #onFree = (): void => {
    if (this.#queue.length > 0) for (const call of this.#queue.splice(0)) this.#assign(call);
    const lead = this.#workers.find(({ isReady, isOver }) => isReady && !isOver);
    if (lead !== undefined && lead !== this.#lead) {
      this.#lead = lead;
      this.#failedStarts = 0;
      this.#options.onLead();
    }
    if (this.#state === "serving") this.#fill();
    else this.#closeIfDone();
  };

  #fill(): void {
    if (!this.#isStarting && this.#workers.length < this.#options.size) this.#spawn();
    // Keeps one worker free for a new client.
    else if (this.#options.isPerClient && !this.#workers.some(({ client }) => client === undefined)) this.#grow();
  }

  get #isStarting(): boolean {
    return this.#launching > 0 || this.#workers.some(({ isReady }) => !isReady);
  }

  get #isFull(): boolean {
    return this.#workers.length + this.#launching >= this.#options.maxSize;
  }

  /** With workers per client, one client may have at most half of them. */
  #mayHaveMore(client: string | undefined): boolean {
    const { isPerClient, maxSize } = this.#options;
    if (!isPerClient || client === undefined) return true;
    return this.#workers.filter((worker) => worker.client === client).length < Math.ceil(maxSize / 2);
  }

  #canGrow(client: string | undefined): boolean {
    return !this.#isFull && this.#mayHaveMore(client);
  }

  #grow(client?: string): void {
    if (this.#isStarting || !this.#mayHaveMore(client)) return;
    if (!this.#isFull) this.#spawn();
    else if (this.#options.isPerClient) this.#makeRoom(client);
  }

  /** Closes the longest idle worker of another client; its exit starts a new one for the queued calls. */
  #makeRoom(client: string | undefined): void {
    if (this.#queue.length === 0 || this.#workers.some(({ isClosing }) => isClosing)) return;
    const idle = this.#workers.filter((worker) => worker.size === 0 && worker.client !== client);
    const [oldest] = idle.toSorted((a, b) => a.usedAtMs - b.usedAtMs);
    void oldest?.close();
  }

  #spawn(): void {
    this.#launching += 1;
    const pauseMs = this.#backoff.leftMs();
    if (pauseMs > 0) setTimeout(this.#start, pauseMs).unref();
    else this.#start();
  }

  readonly #start = (): void => {
    if (this.#isClosed) return;
    const launch = this.#launch().catch((error: unknown) => {
      this.#launching -= 1;
      this.#backoff.ended({ livedMs: 0, wasReady: false, isForCall: false });
      this.#onFailedStart(messageOf(error));
    });
    this.#launches.add(launch);
    void launch.then(() => this.#launches.delete(launch));
  };

  async #launch(): Promise<void> {
    const launched = await this.#options.launch();
    const startedAt = performance.now();
    const worker = new WorkerProcess({
      ...this.#options,
      launched,
      sources: this.#sources,
      onFree: this.#onFree,
      onReturned: (call) => this.#assign(call),
      onUnloaded: (call) => this.#tryAgain(call),
      onExit: (gone, exit) => this.#onExit(gone, exit, performance.now() - startedAt),
    });
    this.#followClearing(launched);
    this.#launching -= 1;
    this.#workers.push(worker);
    if (this.#isClosed) await worker.close();
  }

  /** Removing a sandbox's disk may take long: only `close` waits for it. */
  #followClearing({ cleared }: LaunchedWorker): void {
    if (cleared === undefined) return;
    const clearing = cleared.catch((error: unknown) =>
      this.#options.logger.error("the sandbox of a handler worker was not cleaned up", { error }),
    );
    this.#clearings.add(clearing);
    void clearing.then(() => this.#clearings.delete(clearing));
  }

  #onExit(worker: WorkerProcess, { reason }: WorkerExit, livedMs: number): void {
    this.#workers.splice(this.#workers.indexOf(worker), 1);
    if (this.#lead === worker) this.#lead = undefined;
    if (this.#isClosed) return;
    if (this.#state === "retired" && this.#queue.length === 0) return this.#closeIfDone();
    if (worker.isClosing) return this.#onFree();
    const { isReady: wasReady, isEndedForCall: isForCall } = worker;
    const pause = Math.round(this.#backoff.ended({ livedMs, wasReady, isForCall }));
    const facts = { reason, last_words: worker.lastOutput, pause_ms: pause };
    this.#options.logger.error("a worker process of handlers ended", facts);
    if (!worker.isReady) return this.#onFailedStart(`${reason}\n${worker.lastOutput}`.trim());
    // After the calls of the ended worker were returned.
    setImmediate(() => {
      this.#onFree();
    });
  }

  #onFailedStart(reason: string): void {
    this.#failedStarts += 1;
    this.#options.logger.error("a worker process for handlers could not be started", { reason });
    if (this.#failedStarts >= MAX_FAILED_STARTS) {
      const error = new OwlError("execution_error", `handlers cannot run: ${reason}`, { retryable: true });
      for (const call of this.#queue.splice(0)) call.fail(error);
    }
    if (this.#queue.length > 0) this.#grow();
  }

  #closeIfDone(): void {
    if (this.#state === "retired" && this.#queue.length === 0 && !this.#workers.some(({ isNeeded }) => isNeeded))
      void this.close();
  }
}

const FIRST_PAUSE_MS = 100;
/** When handlers crash their process, calls of other clients wait for at most this long. */
const LONGEST_AFTER_CRASH_MS = 1000;
/** A process that failed to start will probably fail again. */
const LONGEST_AFTER_FAILED_START_MS = 10_000;
/** A worker that ran for this long did not fail because of its start. */
const STEADY_MS = 10_000;

interface EndedWorker {
  readonly livedMs: number;
  /** Whether it became ready. */
  readonly wasReady: boolean;
  /** The server killed it because a call did not stop. */
  readonly isForCall: boolean;
}

/** Exponential backoff for starting the next worker. */
export class RestartBackoff {
  #backoffMs = 0;
  #endedAtMs = 0;

  /** Returns the pause before the next start. There is no new pause after a worker that was killed for a call. */
  ended({ livedMs, wasReady, isForCall }: EndedWorker, nowMs: number = performance.now()): number {
    if (isForCall && wasReady) return this.leftMs(nowMs);
    const longestMs = wasReady ? LONGEST_AFTER_CRASH_MS : LONGEST_AFTER_FAILED_START_MS;
    const isSteady = wasReady && livedMs > STEADY_MS;
    this.#backoffMs = isSteady ? 0 : Math.min(longestMs, Math.max(FIRST_PAUSE_MS, this.#backoffMs * 2));
    this.#endedAtMs = nowMs;
    return this.#backoffMs;
  }

  /** The rest of the pause, which starts at the end of the last worker. */
  leftMs(nowMs: number = performance.now()): number {
    if (nowMs - this.#endedAtMs > STEADY_MS) this.#backoffMs = 0;
    return Math.max(0, this.#endedAtMs + this.#backoffMs - nowMs);
  }
}
