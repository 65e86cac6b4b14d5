import { NumberedSlots } from "../../platform/slots.ts";
import { OwlError, messageOf } from "../../errors/owl-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { JsonLines } from "./json-lines.ts";
import { type LaunchedWorker, logOutputs, type WorkerExit } from "./launch-process.ts";
import { type CallRunner, type RemoteCall, type RemoteTarget, TargetNumbers } from "./remote-call.ts";
import { type FromWorker, type ToWorker, type WireContext, isFromWorker } from "./worker-protocol.ts";

/** After a cancel, the worker must send something within this time. */
const CANCEL_GRACE_MS = 500;
/** A cancelled call may run on for this long. Then its worker takes no more calls and is killed when the others have ended. */
export const RUN_ON_MS = 300_000;
/**
 * A worker whose stream has closed is killed after this time, since its calls wait for its exit. A process that is exiting
 * keeps its exit code: a signal has no effect on it.
 */
const END_GRACE_MS = 1000;
const KEPT_LINES = 5;

type WorkerState =
  /** Before the worker's first message. */
  | { readonly kind: "starting" }
  | { readonly kind: "ready" }
  /** Sent nothing for a whole liveness interval. Calls that it has not started are revoked; it is ready again when it answers. */
  | { readonly kind: "stuck" }
  /** Its stream is closed, by the server or by the worker, and the process still runs. */
  | {
      readonly kind: "ending";
      readonly by: "server" | "worker";
      readonly wasReady: boolean;
      readonly isKilled?: boolean;
    }
  | { readonly kind: "over"; readonly by: "server" | "worker"; readonly wasReady: boolean };

interface WorkerEvents {
  /** The worker can take calls, or takes them again. */
  readonly onFree: () => void;
  /** The worker has not started this call: another one must run it. */
  readonly onReturned: (call: RemoteCall) => void;
  /** The file of this call could not be loaded. Returns whether the call is run again elsewhere. */
  readonly onUnloaded: (call: RemoteCall) => boolean;
  readonly onChanged: (remote: RemoteTarget) => void;
  readonly onListChanged: (list: string) => void;
  readonly onExit: (worker: WorkerProcess, exit: WorkerExit) => void;
}

interface WorkerProcessOptions extends WorkerEvents {
  readonly launched: LaunchedWorker;
  readonly logger: Logger;
  readonly maxLineChars: number;
  /** Texts to import instead of files that are broken on disk. */
  readonly sources: ReadonlyMap<string, string>;
}

/** The server's side of one worker process: its calls, its messages, and whether it still answers. */
export class WorkerProcess implements CallRunner {
  readonly #options: WorkerProcessOptions;
  readonly #lines: JsonLines;
  readonly #calls = new NumberedSlots<RemoteCall>();
  readonly #targets: TargetNumbers;
  readonly #lastLines: string[] = [];
  /** Revoked while the worker was stuck; it has not seen that yet. */
  readonly #revoked = new Set<number>();
  #state: WorkerState = { kind: "starting" };
  #lastId = 0;
  #exclusive = 0;
  #heard = 0;
  #pingedAt: number | undefined;
  #killed: { readonly reason: string; readonly isForCall: boolean } | undefined;
  /** Set when a cancelled call runs on: the worker ends when no other call needs it. */
  #leavingFor: string | undefined;
  /** The client of its first call. */
  client: string | undefined;
  usedAtMs = 0;

  constructor(options: WorkerProcessOptions) {
    this.#options = options;
    const { launched, logger, maxLineChars } = options;
    this.#targets = new TargetNumbers((n, target) =>
      this.#lines.send({ t: "target", n, target: { ...target, file: this.#inside(target.file) } } satisfies ToWorker),
    );
    this.#lines = new JsonLines({
      stream: launched.stream,
      maxLineChars,
      assertLine: (line) => this.#assertLine(line),
      onMessage: (message) => this.#receive(message),
      onEnd: () => this.#onStreamEnd(),
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

  get isReady(): boolean {
    const state = this.#state;
    return state.kind === "ending" || state.kind === "over" ? state.wasReady : state.kind !== "starting";
  }

  get isOver(): boolean {
    return this.#state.kind === "over";
  }

  /** Whether the server ends it, or has ended it, because it is not needed. */
  get isClosing(): boolean {
    const state = this.#state;
    return (state.kind === "ending" || state.kind === "over") && state.by === "server";
  }

  /** Whether it was killed because a call did not stop, and for no other reason. */
  get isEndedForCall(): boolean {
    return this.#killed?.isForCall === true;
  }

  get isAvailable(): boolean {
    return this.#state.kind === "ready" && this.#leavingFor === undefined;
  }

  /** Whether a caller still waits for one of its calls. */
  get isNeeded(): boolean {
    return this.#calls.entries().some(([, { isAbandoned }]) => !isAbandoned);
  }

  /** The last lines that it printed, to explain a failed start. */
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
    const request = call.toRequest(id, this.#targets, wireContext(call));
    this.#lines.send(request.t === "describe" ? { ...request, file: this.#inside(request.file) } : request);
  }

  /** From now on the worker imports these texts instead of the files. */
  keep(sources: ReadonlyMap<string, string>): void {
    if (sources.size === 0 || this.isOver) return;
    const texts = Object.fromEntries([...sources].map(([file, text]) => [this.#inside(file), text]));
    this.#lines.send({ t: "sources", texts } satisfies ToWorker);
  }

  /** Called at intervals while it has calls. A worker that sent nothing since the last ping is stuck. */
  checkLiveness(): void {
    if (this.isOver || this.#calls.size === 0) return;
    if (this.#pingedAt === this.#heard) return this.#revokeWaiting();
    this.#pingedAt = this.#heard;
    this.#lines.send({ t: "ping" } satisfies ToWorker);
  }

  #kill(reason: string, isForCall = false): void {
    this.#killed ??= { reason, isForCall };
    this.#options.launched.kill();
  }

  /** Closes its stream, after which it exits. Resolves when the process is gone: it may write until then. */
  async close(): Promise<void> {
    this.#setEnding("server");
    this.#lines.flush();
    this.#lines.end("it is not needed any more");
    await this.#options.launched.exited;
  }

  #setEnding(by: "server" | "worker"): void {
    if (!this.isOver) this.#state = { kind: "ending", by, wasReady: this.isReady };
  }

  #onStreamEnd(): void {
    if (this.isOver) return;
    if (this.#state.kind !== "ending") this.#setEnding("worker");
    const kill = (): void => {
      if (this.#state.kind === "ending") this.#state = { ...this.#state, isKilled: true };
      this.#options.launched.kill();
    };
    setTimeout(kill, END_GRACE_MS).unref();
  }

  #assertLine(line: string): void {
    try {
      this.#options.launched.assertLine?.(line);
    } catch (error) {
      this.#kill(`it sent a message that is refused: ${messageOf(error)}`);
      throw error;
    }
  }

  #receive(message: unknown): void {
    if (!isFromWorker(message)) return this.#kill("it sent an invalid message");
    this.#heard += 1;
    if (message.t === "done" || message.t === "fail") this.#settle(message);
    else if ("id" in message && message.t !== "skipped") this.#pass(message);
    else this.#note(message);
    if (this.#state.kind === "stuck" && this.#revoked.size === 0) this.#restore();
    if (message.t === "done" || message.t === "fail" || message.t === "hello") this.#options.onFree();
  }

  #settle(message: Extract<FromWorker, { t: "done" | "fail" }>): void {
    const call = this.#take(message.id);
    if (call === undefined) return;
    const isUnloaded = message.t === "fail" && message.error.unloaded === true;
    if (!isUnloaded || !this.#options.onUnloaded(call)) call.settle(message);
  }

  /** Messages that belong to no running call. */
  #note(message: FromWorker): void {
    switch (message.t) {
      case "skipped":
        return this.#onSkipped(message.id);
      case "hello":
        if (this.#state.kind === "starting") this.#state = { kind: "ready" };
        return undefined;
      case "changed": {
        const remote = this.#targets.at(message.n);
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

  /** Revokes the calls that it has not started, so that other workers run them. Started calls stay: it may recover. */
  #revokeWaiting(): void {
    const { registers } = this.#options.launched;
    if (this.#state.kind === "ready") this.#state = { kind: "stuck" };
    if (registers === undefined) return;
    const started = registers.revoke();
    for (const [id, call] of this.#calls.entries()) {
      if (id <= started) continue;
      this.#take(id);
      this.#revoked.add(id);
      this.#options.onReturned(call);
    }
    if (this.#revoked.size === 0) registers.restore();
  }

  #restore(): void {
    this.#state = { kind: "ready" };
    this.#options.launched.registers?.restore();
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
      if (call.isExclusive) this.#kill(`${call.what} went on after it was cancelled`, true);
      else if (this.#heard === heard) this.#kill(`${call.what} blocked it beyond its timeout`, true);
      else setTimeout(() => this.#leaveFor(id, call), RUN_ON_MS).unref();
      this.#options.onFree();
    };
    // Messages that have arrived are read first, so that a busy server does not kill its workers.
    setTimeout(() => setImmediate(check), CANCEL_GRACE_MS).unref();
  }

  #leaveFor(id: number, call: RemoteCall): void {
    if (this.isOver || this.#calls.get(id) !== call) return;
    this.#leavingFor ??= `${call.what} ran on long after it was cancelled`;
    this.#endIfUnneeded();
  }

  #endIfUnneeded(): void {
    if (this.#leavingFor !== undefined && !this.isOver && !this.isNeeded) this.#kill(this.#leavingFor, true);
  }

  #take(id: number): RemoteCall | undefined {
    const call = this.#calls.delete(id);
    if (call?.isExclusive === true) this.#exclusive -= 1;
    this.#endIfUnneeded();
    return call;
  }

  #inside(file: string): string {
    return `${this.#options.launched.pathPrefix ?? ""}${file}`;
  }

  #onExit(exit: WorkerExit): void {
    const { isReady: wasReady, isClosing } = this;
    const before = this.#state;
    this.#state = { kind: "over", by: isClosing ? "server" : "worker", wasReady };
    const { registers } = this.#options.launched;
    const started = registers === undefined ? this.#lastId : registers.revoke();
    registers?.close();
    this.#lines.end("it ended");
    const reason = this.#killed?.reason ?? exit.reason ?? describeExit(exit, before);
    const calls = this.#calls.entries();
    for (const [id] of calls) this.#calls.delete(id);
    this.#options.onExit(this, { ...exit, reason });
    for (const [id, call] of calls) {
      if (id > started && wasReady) this.#options.onReturned(call);
      else if (isClosing) call.fail(ended(call, reason));
      else call.lose(ended(call, reason));
    }
  }
}

function wireContext({ context, traceparent, tracestate }: RemoteCall): WireContext | undefined {
  if (context === undefined) return undefined;
  const { principal, traceId, sessionId, protocolVersion } = context;
  return { principal, traceId, sessionId, protocolVersion, traceparent, tracestate };
}

function describeExit({ code, signal }: WorkerExit, before: WorkerState): string {
  const wasKilled = before.kind === "ending" && before.by === "worker" && before.isKilled === true;
  // The exit code is the worker's own, even when it was killed while it exited.
  if (wasKilled && signal === "SIGKILL") return "it closed its stream to the server and was killed";
  return signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
}

function ended({ what }: RemoteCall, reason: string): OwlError {
  return new OwlError("execution_error", `the worker process that ran ${what} is gone: ${reason}`, {
    retryable: true,
    hint: "Call it again. If it fails in the same way, the handler itself ends its process: read the server's log.",
  });
}
