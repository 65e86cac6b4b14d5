import type { ProcessInfo } from "../../contract/guest.ts";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { Socket } from "node:net";
import { constants as osConstants } from "node:os";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { deferred, isDoneWithin } from "../deferred.ts";
import { isRecord, readLines } from "./line-reader.ts";
import { descendantPids, describeProcesses, newestPid } from "./descendants.ts";
import type { LaunchOptions, ProcessExit, RunningProcess, OutputPipe } from "./running-process.ts";

/** How long a supervisor may take to end its processes. Then it is killed, and the spawner ends the rest. */
const END_DEADLINE_MS = 5_000;
const START_DEADLINE_MS = 10_000;
const WAKE_MS = 250;
const EVENT_BYTES_MAX = 65_536;

const READ = constants.O_RDONLY | constants.O_NONBLOCK;
const WRITE = constants.O_WRONLY | constants.O_NONBLOCK;
const DIRECTIONS = [WRITE, READ, WRITE, READ, READ, READ];
/** Shared by all reads: the data is copied at once. */
const CHUNK = Buffer.allocUnsafeSlow(65_536);

/** One program from its start to the end of its descendants. */
class Run {
  readonly started = deferred<number>();
  readonly exited = deferred<ProcessExit>();
  readonly gone = deferred();
  /** Whether the supervisor can be used again: the program has left no process. */
  isClean = false;

  constructor() {
    this.started.promise.catch(() => {});
  }
}

/** The guest's side of one supervisor (see `python/spawner.py`): a process that runs one program at a time. */
export class Supervisor {
  readonly #pid: number;
  readonly #fds: readonly number[];
  readonly #onIdle: (supervisor: Supervisor) => void;
  readonly #control: Socket;
  readonly #stdout: PipeReader;
  readonly #stderr: PipeReader;
  readonly #unopenedFds: Set<number>;
  #run = new Run();
  /** The newest process id when the program had no descendants: without a newer process it still has none. */
  #childlessAt: number | undefined;
  #isGone = false;

  /** Opens the guest's ends of the supervisor's pipes, in the order of their announcement. */
  constructor(options: {
    readonly pid: number;
    readonly remoteFds: readonly number[];
    /** Called when it can be used again. */
    readonly onIdle: (supervisor: Supervisor) => void;
  }) {
    this.#pid = options.pid;
    this.#onIdle = options.onIdle;
    this.#fds = openAll(options.pid, options.remoteFds);
    const [controlFd = -1, eventsFd = -1, inputFd = -1, stdoutFd = -1, stderrFd = -1, answersFd = -1] = this.#fds;
    this.#unopenedFds = new Set([inputFd, answersFd]);
    this.#control = new Socket({ fd: controlFd, readable: false, writable: true });
    this.#control.on("error", () => this.#control.destroy());
    this.#stdout = new PipeReader(stdoutFd);
    this.#stderr = new PipeReader(stderrFd);
    const events = new Socket({ fd: eventsFd, readable: true, writable: false });
    events.on("error", () => events.destroy());
    readLines(events, { onLine: (line) => this.#onEvent(line), maxLineBytes: EVENT_BYTES_MAX });
    events.on("close", () => this.#onGone());
  }

  get isUsable(): boolean {
    return !this.#isGone;
  }

  async launch(options: LaunchOptions): Promise<RunningProcess> {
    const run = new Run();
    this.#run = run;
    this.#stdout.hold();
    this.#stderr.hold();
    const { argv, cwd, env, stdin, isNode = false } = options;
    this.#tell({ argv, cwd, env, stdin, isNode });
    if (this.#isGone) {
      this.#onGone();
      await run.started.promise;
    }
    const { input, answers } = this.#openChannel(stdin);
    const pid = await this.#started(run);
    return {
      pid,
      stdout: this.#stdout,
      stderr: this.#stderr,
      input,
      answers,
      exited: run.exited.promise,
      gone: run.gone.promise,
      signal: (name) => this.#signal(run, name),
      end: () => this.#end(run),
      descendants: () => (run.isClean || this.#isGone ? [] : this.#descendants(pid)),
      release: () => this.#release(run, stdin),
    };
  }

  /** A program can stop its supervisor before the supervisor reports the start. */
  async #started(run: Run): Promise<number> {
    const deadline = setTimeout(
      () => run.started.reject(new Error("the supervisor does not answer")),
      START_DEADLINE_MS,
    );
    const waker = setInterval(() => sendQuietly(this.#pid, "SIGCONT"), WAKE_MS);
    try {
      return await run.started.promise;
    } finally {
      clearTimeout(deadline);
      clearInterval(waker);
    }
  }

  /** Ends an idle supervisor. */
  discard(): void {
    sendQuietly(this.#pid, "SIGKILL");
    this.#control.destroy();
  }

  /** The channel's two pipes serve one program only: the next one must not read the rest of their data. */
  #openChannel(stdin: LaunchOptions["stdin"]): { input: Writable; answers: Readable | undefined } {
    const [, , inputFd = -1, , , answersFd = -1] = this.#fds;
    if (stdin === "empty") return { input: new PassThrough(), answers: undefined };
    this.#unopenedFds.delete(inputFd);
    const input = new Socket({ fd: inputFd, readable: false, writable: true });
    input.on("error", () => input.destroy());
    if (stdin === "pipe") return { input, answers: undefined };
    this.#unopenedFds.delete(answersFd);
    const answers = new Socket({ fd: answersFd, readable: true, writable: false });
    answers.on("error", () => answers.destroy());
    return { input, answers };
  }

  #release(run: Run, stdin: LaunchOptions["stdin"]): void {
    this.#stdout.onData(() => {});
    this.#stderr.onData(() => {});
    if (!run.isClean || this.#isGone) return;
    if (stdin === "empty") this.#onIdle(this);
    else this.discard();
  }

  #descendants(mainPid: number): ProcessInfo[] {
    // Read before the search: a process that starts during the search is newer the next time.
    const newest = newestPid();
    if (newest !== undefined && newest === this.#childlessAt) return [];
    const found = descendantPids(this.#pid).filter((pid) => pid !== mainPid);
    this.#childlessAt = found.length === 0 ? newest : undefined;
    return describeProcesses(found);
  }

  async #end(run: Run): Promise<void> {
    if (this.#isGone || run.isClean) return;
    // The program may have stopped its own supervisor.
    sendQuietly(this.#pid, "SIGCONT");
    this.#tell({ end: true });
    if (await isDoneWithin(run.gone.promise, END_DEADLINE_MS)) return;
    // It does not answer. When it is killed, the spawner inherits its processes and ends them.
    sendQuietly(this.#pid, "SIGKILL");
    await isDoneWithin(run.gone.promise, END_DEADLINE_MS);
  }

  /** A reusable supervisor may already run another program. */
  #signal(run: Run, name: NodeJS.Signals): void {
    if (!run.isClean) this.#tell({ signal: osConstants.signals[name] });
  }

  #tell(message: object): void {
    if (!this.#control.destroyed) this.#control.write(`${JSON.stringify(message)}\n`);
  }

  #onEvent(line: string): void {
    const event: unknown = JSON.parse(line);
    if (!isRecord(event)) return;
    const { started, failed, code, exited, isAlive } = event;
    if (typeof started === "number") this.#run.started.resolve(started);
    if (typeof failed === "string") this.#run.started.reject(Object.assign(new Error(failed), { code }));
    if (isRecord(exited)) {
      this.#run.isClean = isAlive === false;
      if (this.#run.isClean) this.#run.gone.resolve();
      this.#run.exited.resolve(toExit(exited));
    }
  }

  #onGone(): void {
    this.#isGone = true;
    this.#control.destroy();
    for (const fd of this.#unopenedFds) closeSync(fd);
    this.#unopenedFds.clear();
    this.#stdout.closeIfUnused();
    this.#stderr.closeIfUnused();
    this.#run.started.reject(new Error("the supervisor of the process was ended"));
    this.#run.exited.resolve({ code: null, signal: "SIGKILL" });
    this.#run.gone.resolve();
  }
}

function openAll(pid: number, remoteFds: readonly number[]): number[] {
  const fds: number[] = [];
  try {
    for (const [index, flags] of DIRECTIONS.entries()) {
      fds.push(openSync(`/proc/${pid}/fd/${remoteFds[index]}`, flags));
    }
    return fds;
  } catch (error) {
    for (const fd of fds) closeSync(fd);
    throw error;
  }
}

function toExit({ code, signal }: Record<string, unknown>): ProcessExit {
  return { code: typeof code === "number" ? code : null, signal: typeof signal === "string" ? signal : null };
}

function sendQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has exited.
  }
}

/** The reading end of a pipe. It is not read before it has a listener. */
class PipeReader implements OutputPipe {
  readonly #fd: number;
  #socket: Socket | undefined;
  #isClosed = false;
  #held: Buffer[] = [];
  #listener: (chunk: Buffer) => void = () => {};

  constructor(fd: number) {
    this.#fd = fd;
  }

  hold(): void {
    const held: Buffer[] = [];
    this.#held = held;
    this.#listener = (chunk) => void held.push(chunk);
  }

  onData(listener: (chunk: Buffer) => void): void {
    this.#listener = listener;
    for (const chunk of this.#held.splice(0)) listener(chunk);
    if (this.#socket !== undefined || this.#isClosed) return;
    const socket = new Socket({ fd: this.#fd, readable: true, writable: false });
    socket.on("data", (chunk: Buffer) => this.#listener(chunk));
    socket.on("error", () => socket.destroy());
    this.#socket = socket;
  }

  /** Reads synchronously: the last bytes of the program are in the pipe before the report of its exit arrives. */
  drain(): void {
    while (this.#socket?.destroyed === false) {
      const byteCount = this.#read(CHUNK);
      if (byteCount === 0) return;
      this.#listener(Buffer.from(CHUNK.subarray(0, byteCount)));
    }
  }

  /** A pipe in use closes itself at its end. */
  closeIfUnused(): void {
    if (this.#socket !== undefined || this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#fd);
  }

  #read(chunk: Buffer): number {
    // Most reads find no data, which Node reports as an error: without a stack trace that is ten times cheaper.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      return readSync(this.#fd, chunk, 0, chunk.length, null);
    } catch {
      // EAGAIN: there is no data.
      return 0;
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }
}
