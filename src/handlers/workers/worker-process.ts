import { NumberedSlots } from "../../platform/slots.ts";
import { OwlError, messageOf } from "../../errors/owl-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { JsonLines } from "./json-lines.ts";
import { type LaunchedWorker, logOutputs, type WorkerExit } from "./launch-process.ts";
import type { CallRunner, RemoteCall, RemoteTarget } from "./remote-call.ts";
import { type FromWorker, type ToWorker, type WireContext, isFromWorker } from "./worker-protocol.ts";

/** After a call was cancelled its worker has this long to show that it still lives. */
const CANCEL_GRACE_MS = 500;
/** A call that runs on for so long after its end costs its worker: that takes no more, and ends when the others are done. */
export const RUN_ON_MS = 300_000;
/**
 * A worker ends by itself when its stream does; one that lives on is ended after this time, since its calls wait for that.
 * One that is on its way out keeps its exit code, however long that takes: the kernel kills nothing that exits already.
 */
const END_GRACE_MS = 1000;
const KEPT_LINES = 5;

interface WorkerEvents {
  /** It can take calls, or takes them again. */
  readonly onFree: () => void;
  /** Nobody runs this call: it must go elsewhere. */
  readonly onReturned: (call: RemoteCall) => void;
  /** The file of this call could not be loaded. Whether the call goes on elsewhere. */
  readonly onUnloaded: (call: RemoteCall) => boolean;
  readonly onChanged: (remote: RemoteTarget) => void;
  readonly onListChanged: (list: string) => void;
  readonly onExit: (worker: WorkerProcess, exit: WorkerExit) => void;
}

interface WorkerProcessOptions extends WorkerEvents {
  readonly launched: LaunchedWorker;
  readonly logger: Logger;
  readonly maxLineChars: number;
  /** Texts that stand in for files that are broken on the disk. */
  readonly sources: ReadonlyMap<string, string>;
}

/** One worker as the server sees it: what it was given, what it said last, and whether it still answers. */
export class WorkerProcess implements CallRunner {
  readonly #options: WorkerProcessOptions;
  readonly #lines: JsonLines;
  readonly #calls = new NumberedSlots<RemoteCall>();
  readonly #numbers = new Map<RemoteTarget, number>();
  readonly #targets: RemoteTarget[] = [];
  readonly #lastLines: string[] = [];
  /** Taken back while the worker did not answer; it has not seen them yet. */
  readonly #revoked = new Set<number>();
  #lastId = 0;
  #exclusive = 0;
  #heard = 0;
  #pingedAt: number | undefined;
  #killedFor: string | undefined;
  #isCutOff = false;
  /** It closed its stream and lived on: the server ended it. */
  #wasLeft = false;
  isReady = false;
  isStuck = false;
  #leavingFor: string | undefined;
  /** The server ends it because it is not needed. */
  isClosing = false;
  isOver = false;
  /** The client of its first call. */
  client: string | undefined;
  usedAtMs = 0;
  /** A call did not stop when it should: its process was ended for that, and for nothing else. */
  isEndedForCall = false;

  constructor(options: WorkerProcessOptions) {
    this.#options = options;
    const { launched, logger, maxLineChars } = options;
    this.#lines = new JsonLines({
      stream: launched.stream,
      maxLineChars,
      assertLine: (line) => this.#assertLine(line),
      onMessage: (message) => this.#receive(message),
      onEnd: () => this.#onLineEnd(),
    });
    this.keep(options.sources);
    logOutputs(launched, logger, (line) => {
      this.#lastLines.push(line.slice(0, 500));
      if (this.#lastLines.length > KEPT_LINES) this.#lastLines.shift();
    });
    void launched.exited.then((exit) => this.#onExit(exit));
  }

  get size(): number {
    return this.#calls.size;
  }

  get hasExclusive(): boolean {
    return this.#exclusive > 0;
  }

  get isAvailable(): boolean {
    return (
      this.isReady &&
      !this.isOver &&
      !this.isClosing &&
      !this.#isCutOff &&
      !this.isStuck &&
      this.#leavingFor === undefined
    );
  }

  /** Whether somebody still waits for something that runs here. */
  get isNeeded(): boolean {
    return this.#calls.entries().some(([, { isAbandoned }]) => !isAbandoned);
  }

  /** The last that it printed, to explain why it could not start. */
  get lastOutput(): string {
    return this.#lastLines.join("\n");
  }

  dispatch(call: RemoteCall): void {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#calls.set(id, call);
    this.client ??= call.client;
    this.usedAtMs = performance.now();
    if (call.isExclusive) this.#exclusive += 1;
    call.assignTo(this, id);
    const { job } = call;
    if (job.op === "describe") {
      return this.#lines.send({ t: "describe", id, file: this.#inside(job.file) } satisfies ToWorker);
    }
    const n = this.#numberOf(job.remote);
    if (job.op === "watch") return this.#lines.send({ t: "watch", id, n } satisfies ToWorker);
    const { op, input } = job;
    this.#lines.send({ t: "call", id, n, op, input, ctx: wireContext(call) } satisfies ToWorker);
  }

  /** From now on it imports these texts in place of the files. */
  keep(sources: ReadonlyMap<string, string>): void {
    if (sources.size === 0 || this.isOver) return;
    const texts = Object.fromEntries([...sources].map(([file, text]) => [this.#inside(file), text]));
    this.#lines.send({ t: "sources", texts } satisfies ToWorker);
  }

  /** Called now and then while it has calls. A worker that let a whole round pass without a word is stuck. */
  checkLiveness(): void {
    if (this.isOver || this.#calls.size === 0) return;
    if (this.#pingedAt === this.#heard) return this.#takeBack();
    this.#pingedAt = this.#heard;
    this.#lines.send({ t: "ping" } satisfies ToWorker);
  }

  kill(reason: string): void {
    this.#killedFor ??= reason;
    this.#options.launched.kill();
  }

  /** Ends it as it would end by itself. Resolves when the process is gone: it may still write until then. */
  async close(): Promise<void> {
    this.isClosing = true;
    this.#lines.flush();
    this.#lines.end("it is not needed any more");
    await this.#options.launched.exited;
  }

  /** Nothing reaches it any more: a call that came now would be lost with it, and never have run. */
  #onLineEnd(): void {
    this.#isCutOff = true;
    if (this.isOver) return;
    const endIt = (): void => {
      this.#wasLeft = !this.isClosing && !this.isOver;
      this.#options.launched.kill();
    };
    setTimeout(endIt, END_GRACE_MS).unref();
  }

  #assertLine(line: string): void {
    try {
      this.#options.launched.assertLine?.(line);
    } catch (error) {
      this.kill(`it sent what is not read: ${messageOf(error)}`);
      throw error;
    }
  }

  #receive(message: unknown): void {
    if (!isFromWorker(message)) return this.kill("it sent what is no message");
    this.#heard += 1;
    if (message.t === "done" || message.t === "fail") this.#settle(message);
    else if ("id" in message && message.t !== "skipped") this.#pass(message);
    else this.#note(message);
    if (this.isStuck && this.#revoked.size === 0) this.#restore();
    if (message.t === "done" || message.t === "fail" || message.t === "hello") this.#options.onFree();
  }

  #settle(message: Extract<FromWorker, { t: "done" | "fail" }>): void {
    const call = this.#take(message.id);
    if (call === undefined) return;
    const isUnloaded = message.t === "fail" && message.error.unloaded === true;
    if (!isUnloaded || !this.#options.onUnloaded(call)) call.settle(message);
  }

  /** What the worker says about itself. */
  #note(message: FromWorker): void {
    switch (message.t) {
      case "skipped":
        return this.#onSkipped(message.id);
      case "hello":
        this.isReady = true;
        return undefined;
      case "changed": {
        const remote = this.#targets[message.n];
        return remote === undefined ? undefined : this.#options.onChanged(remote);
      }
      case "notice":
        return this.#options.logger[message.level](message.message, { text: message.text?.slice(0, 4000) });
      default:
        return undefined;
    }
  }

  #pass(message: FromWorker & { readonly id: number }): void {
    const call = this.#calls.get(message.id);
    if (call !== undefined) call.receive(message, (answer) => this.#lines.send(answer));
    else if (message.t === "listChanged") this.#options.onListChanged(message.list);
  }

  /** Whatever it has not begun goes to other workers; what it has begun stays, for it may come to its senses. */
  #takeBack(): void {
    const { journal } = this.#options.launched;
    this.isStuck = true;
    if (journal === undefined) return;
    const started = journal.revoke();
    for (const [id, call] of this.#calls.entries()) {
      if (id <= started) continue;
      this.#take(id);
      this.#revoked.add(id);
      this.#options.onReturned(call);
    }
    if (this.#revoked.size === 0) journal.restore();
  }

  #restore(): void {
    this.isStuck = false;
    this.#options.launched.journal?.restore();
    this.#options.onFree();
  }

  #onSkipped(id: number): void {
    this.#revoked.delete(id);
    const call = this.#take(id);
    if (call !== undefined) this.#options.onReturned(call);
  }

  cancel(id: number, call: RemoteCall): void {
    if (this.#calls.get(id) === undefined) return;
    this.#lines.send({ t: "cancel", id, error: call.endReason } satisfies ToWorker);
    this.#lines.send({ t: "ping" } satisfies ToWorker);
    const heard = this.#heard;
    const check = (): void => {
      if (this.isOver || this.#calls.get(id) === undefined) return;
      if (call.isExclusive) this.#endFor(`${call.what} went on after it was stopped`);
      else if (this.#heard === heard) this.#endFor(`${call.what} blocked it beyond its time`);
      else setTimeout(() => this.#leaveFor(id, call), RUN_ON_MS).unref();
      this.#options.onFree();
    };
    // What has arrived already is read first: a busy server must not blame its workers.
    setTimeout(() => setImmediate(check), CANCEL_GRACE_MS).unref();
  }

  #leaveFor(id: number, call: RemoteCall): void {
    if (this.isOver || this.#calls.get(id) !== call) return;
    this.#leavingFor ??= `${call.what} ran on long after it was stopped`;
    this.#endIfLeft();
  }

  /** Nothing runs any more that somebody waits for. */
  #endIfLeft(): void {
    if (this.#leavingFor !== undefined && !this.isOver && !this.isNeeded) this.#endFor(this.#leavingFor);
  }

  #endFor(reason: string): void {
    this.isEndedForCall = true;
    this.kill(reason);
  }

  #take(id: number): RemoteCall | undefined {
    const call = this.#calls.delete(id);
    if (call?.isExclusive === true) this.#exclusive -= 1;
    if (this.#leavingFor !== undefined) this.#endIfLeft();
    return call;
  }

  #numberOf(remote: RemoteTarget): number {
    let n = this.#numbers.get(remote);
    if (n === undefined) {
      n = this.#targets.push(remote) - 1;
      this.#numbers.set(remote, n);
      const target = { ...remote.target, file: this.#inside(remote.target.file) };
      this.#lines.send({ t: "target", n, target } satisfies ToWorker);
    }
    return n;
  }

  #inside(file: string): string {
    return `${this.#options.launched.pathPrefix ?? ""}${file}`;
  }

  #onExit(exit: WorkerExit): void {
    this.isOver = true;
    const { journal } = this.#options.launched;
    const started = journal === undefined ? this.#lastId : journal.revoke();
    journal?.close();
    this.#lines.end("it ended");
    const reason = this.#killedFor ?? exit.reason ?? describeExit(exit, this.#wasLeft);
    const calls = this.#calls.entries();
    for (const [id] of calls) this.#calls.delete(id);
    this.#options.onExit(this, { ...exit, reason });
    for (const [id, call] of calls) {
      if (id > started && this.isReady) this.#options.onReturned(call);
      else if (this.isClosing) call.fail(ended(call, reason));
      else call.lose(ended(call, reason));
    }
  }
}

function wireContext({ context, traceparent, tracestate }: RemoteCall): WireContext | undefined {
  if (context === undefined) return undefined;
  const { principal, traceId, sessionId, protocolVersion } = context;
  return { principal, traceId, sessionId, protocolVersion, traceparent, tracestate };
}

function describeExit({ code, signal }: WorkerExit, wasLeft: boolean): string {
  // An exit code is its own, also when it was killed in the meantime.
  if (wasLeft && signal === "SIGKILL") return "it closed its line to the server, and was ended";
  return signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
}

function ended({ what }: RemoteCall, reason: string): OwlError {
  return new OwlError("execution_error", `the worker process that ran ${what} is gone: ${reason}`, {
    retryable: true,
    hint: "Call it again. If it fails in the same way, the handler itself ends its process: read the server's log.",
  });
}
