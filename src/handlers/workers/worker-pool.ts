import { OwlError, messageOf } from "../../errors/owl-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { LaunchedWorker, LaunchWorker, WorkerExit } from "./launch-process.ts";
import { RemoteCall, type RemoteCallOptions, type RemoteTarget, type UseSandbox } from "./remote-call.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Long enough that a busy machine does not look like a blocked worker. */
const PULSE_MS = 200;
const MAX_FAILED_STARTS = 3;
const LONGEST_END_MS = 3000;

interface WorkerPoolOptions {
  readonly launch: LaunchWorker;
  readonly logger: Logger;
  /** Workers that are kept; the second takes over at once when the first is blocked. */
  readonly size: number;
  readonly maxSize: number;
  /** A worker serves the calls of one client only, since its children may be anybody's. */
  readonly isPerClient: boolean;
  readonly maxLineChars: number;
  readonly useSandbox?: UseSandbox | undefined;
  /** The code of a file as it was when it was described, with what it imports. */
  readonly sourcesOf: (file: string) => ReadonlyMap<string, string> | undefined;
  readonly onChanged: (remote: RemoteTarget) => void;
  readonly onListChanged: (list: string) => void;
  /** A first worker is there, or there again: what must be asked of one worker is to be asked now. */
  readonly onLead: () => void;
}

/**
 * Workers that run the same code. All calls go to the first one that answers, so that what a file keeps in memory is
 * the same from call to call for as long as nothing is wrong; the others stand by.
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
  readonly #pause = new RestartBackoff();
  #pulse: NodeJS.Timeout | undefined;
  #lead: WorkerProcess | undefined;
  #closing: Promise<void> | undefined;
  /** Every process is gone. */
  isOver = false;
  #isRetired = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#spawn();
  }

  /** Runs a job in one of the workers. */
  run(options: Pick<RemoteCallOptions, "job" | "context" | "refused">): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { job, context, refused } = options;
      this.#place(new RemoteCall({ job, context, refused, useSandbox: this.#options.useSandbox, resolve, reject }));
    });
  }

  /** Files are broken on the disk: workers that do not have them yet take these texts. */
  keep(sources: ReadonlyMap<string, string>): void {
    for (const [file, text] of sources) this.#sources.set(file, text);
    for (const worker of this.#workers) worker.keep(sources);
  }

  /** Takes no more work, finishes what runs, and ends. */
  retire(): void {
    this.#isRetired = true;
    this.#endIfDone();
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  get #isClosed(): boolean {
    return this.#closing !== undefined;
  }

  async #close(): Promise<void> {
    clearInterval(this.#pulse);
    const error = new OwlError("shutting_down", "the server is stopping");
    for (const call of this.#queue.splice(0)) call.fail(error);
    const gone = Promise.all([...this.#workers.map((worker) => worker.close()), ...this.#launches]);
    const cleared = gone.then(() => Promise.all(this.#clearings));
    await Promise.race([cleared, this.#patience()]);
    this.isOver = true;
  }

  /** A process that cannot even be killed must not keep the server from ending. */
  #patience(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, LONGEST_END_MS).unref());
  }

  #place(call: RemoteCall): void {
    if (call.isAbandoned) return call.fail(undefined);
    if (this.#isClosed) return call.fail(new OwlError("shutting_down", "the server is stopping"));
    const worker = this.#choose(call);
    if (worker === undefined) {
      this.#queue.push(call);
      this.#grow(call.client);
      return;
    }
    worker.dispatch(call);
    this.#pulse ??= setInterval(this.#beat, PULSE_MS).unref();
  }

  /** Between a save and the look at it the disk may hold what was never served: the call gets what was. */
  #tryAgain(call: RemoteCall): boolean {
    const { job, isSecondTry } = call;
    const sources = job.op === "describe" || isSecondTry ? undefined : this.#options.sourcesOf(job.remote.target.file);
    if (sources === undefined) return false;
    call.isSecondTry = true;
    this.keep(sources);
    this.#place(call);
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
    // Sharing with a call that may have to be killed is the last resort.
    return this.#canGrow(call.client) ? undefined : second;
  }

  /** What the server itself asks of a file is asked of a worker that has served no client: its answer counts for all. */
  #mayServe({ client }: WorkerProcess, call: RemoteCall): boolean {
    return !this.#options.isPerClient || client === undefined || client === call.client;
  }

  readonly #beat = (): void => {
    // What has arrived already is read first: a busy server must not blame its workers.
    setImmediate(() => {
      for (const worker of this.#workers) worker.checkLiveness();
      if (this.#workers.every(({ size }) => size === 0)) {
        clearInterval(this.#pulse);
        this.#pulse = undefined;
      }
    });
  };

  readonly #onFree = (): void => {
    if (this.#queue.length > 0) for (const call of this.#queue.splice(0)) this.#place(call);
    const lead = this.#workers.find(({ isReady, isOver }) => isReady && !isOver);
    if (lead !== undefined && lead !== this.#lead) {
      this.#lead = lead;
      this.#failedStarts = 0;
      this.#options.onLead();
    }
    if (!this.#isRetired) this.#fill();
    else this.#endIfDone();
  };

  #fill(): void {
    if (!this.#isStarting && this.#workers.length < this.#options.size) this.#spawn();
    // A worker that is ready for a client that has none yet.
    else if (this.#options.isPerClient && !this.#workers.some(({ client }) => client === undefined)) this.#grow();
  }

  get #isStarting(): boolean {
    return this.#launching > 0 || this.#workers.some(({ isReady }) => !isReady);
  }

  get #isFull(): boolean {
    return this.#workers.length + this.#launching >= this.#options.maxSize;
  }

  /** Where each client has workers of its own, one client may have half of all. */
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

  /** Of the workers that serve other clients, the one that was idle for longest ends. A new one follows for what is queued. */
  #makeRoom(client: string | undefined): void {
    if (this.#queue.length === 0 || this.#workers.some(({ isClosing }) => isClosing)) return;
    const idle = this.#workers.filter((worker) => worker.size === 0 && worker.client !== client);
    const [oldest] = idle.toSorted((a, b) => a.usedAtMs - b.usedAtMs);
    void oldest?.close();
  }

  #spawn(): void {
    this.#launching += 1;
    const pauseMs = this.#pause.leftMs();
    if (pauseMs > 0) setTimeout(this.#start, pauseMs).unref();
    else this.#start();
  }

  readonly #start = (): void => {
    if (this.#isClosed) return;
    const launch = this.#launch().catch((error: unknown) => {
      this.#launching -= 1;
      this.#pause.ended({ livedMs: 0, wasReady: false, isForCall: false });
      this.#onFailedStart(messageOf(error));
    });
    this.#launches.add(launch);
    void launch.then(() => this.#launches.delete(launch));
  };

  async #launch(): Promise<void> {
    const { launch, logger, maxLineChars, onChanged, onListChanged } = this.#options;
    const launched = await launch();
    const startedAt = performance.now();
    const worker = new WorkerProcess({
      launched,
      logger,
      maxLineChars,
      sources: this.#sources,
      onChanged,
      onListChanged,
      onFree: this.#onFree,
      onReturned: (call) => this.#place(call),
      onUnloaded: (call) => this.#tryAgain(call),
      onExit: (gone, exit) => this.#onExit(gone, exit, performance.now() - startedAt),
    });
    this.#followClearing(launched);
    this.#launching -= 1;
    this.#workers.push(worker);
    if (this.#isClosed) await worker.close();
  }

  /** The disk of a sandbox may take its time: neither the calls of a worker that is gone nor the next one wait for it. */
  #followClearing({ cleared }: LaunchedWorker): void {
    if (cleared === undefined) return;
    const clearing = cleared.catch((error: unknown) =>
      this.#options.logger.error("the sandbox of handlers was not cleared up", { error }),
    );
    this.#clearings.add(clearing);
    void clearing.then(() => this.#clearings.delete(clearing));
  }

  #onExit(worker: WorkerProcess, { reason }: WorkerExit, livedMs: number): void {
    this.#workers.splice(this.#workers.indexOf(worker), 1);
    if (this.#lead === worker) this.#lead = undefined;
    if (this.#isClosed) return;
    if (this.#isRetired && this.#queue.length === 0) return this.#endIfDone();
    if (worker.isClosing) return this.#onFree();
    const { isReady: wasReady, isEndedForCall: isForCall } = worker;
    const pause = Math.round(this.#pause.ended({ livedMs, wasReady, isForCall }));
    const facts = { reason, last_words: worker.lastOutput, pause_ms: pause };
    this.#options.logger.error("a worker process of handlers ended", facts);
    if (!worker.isReady) return this.#onFailedStart(`${reason}\n${worker.lastOutput}`.trim());
    // After the calls of the one that is gone have come back.
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

  #endIfDone(): void {
    if (this.#isRetired && this.#queue.length === 0 && !this.#workers.some(({ isNeeded }) => isNeeded))
      void this.close();
  }
}

const FIRST_PAUSE_MS = 100;
/** Handlers that end their process when they are called: everybody else's calls wait this long at most. */
const LONGEST_AFTER_CRASH_MS = 1000;
/** A process that cannot even start will hardly do so the next time. */
const LONGEST_AFTER_FAILED_START_MS = 10_000;
/** A worker that lived this long did not fail because of its start. */
const STEADY_MS = 10_000;

interface EndedWorker {
  readonly livedMs: number;
  /** Whether it ever took calls. */
  readonly wasReady: boolean;
  /** The server ended it, since a call did not stop when it should. */
  readonly isForCall: boolean;
}

/** How long the next worker waits before it starts, so that workers which keep ending do not keep the machine busy. */
export class RestartBackoff {
  #pauseMs = 0;
  #endedAtMs = 0;

  /** The pause that follows. A call that took too long says nothing against its process: there is none after it. */
  ended({ livedMs, wasReady, isForCall }: EndedWorker, nowMs: number = performance.now()): number {
    if (isForCall && wasReady) return this.leftMs(nowMs);
    const longestMs = wasReady ? LONGEST_AFTER_CRASH_MS : LONGEST_AFTER_FAILED_START_MS;
    const isSteady = wasReady && livedMs > STEADY_MS;
    this.#pauseMs = isSteady ? 0 : Math.min(longestMs, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2));
    this.#endedAtMs = nowMs;
    return this.#pauseMs;
  }

  /** What is left of it: it counts from the end of the last worker, whenever the next is needed. */
  leftMs(nowMs: number = performance.now()): number {
    if (nowMs - this.#endedAtMs > STEADY_MS) this.#pauseMs = 0;
    return Math.max(0, this.#endedAtMs + this.#pauseMs - nowMs);
  }
}
