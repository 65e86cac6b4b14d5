import { OwlError } from "../../../errors/owl-error.ts";
import type { Counter } from "../../policy/terms.ts";
import { Calendar, type Day } from "../calendar.ts";
import type { Clock } from "../clock.ts";
import type { Admission, AdmitRequest, Crossing, Lease, LimitStore, Used } from "../limit-store.ts";
import { Holders } from "./holders.ts";
import { type BatchMoment, readAdmission, readCrossings, readUsage, toWire } from "./limit-answers.ts";
import type { LimitEngine } from "./limit-engine.ts";

export interface SharedLimitStoreOptions {
  readonly engine: LimitEngine;
  /** Asked with every batch: a reload may change it. */
  readonly timeZone: () => string;
  /** How long after its last sign of life a server's places are kept. */
  readonly leaseMs: number;
  /** In place of the engine's own; for tests. */
  readonly space?: string;
  readonly clock?: Pick<Clock, "wallMs" | "steadyMs">;
}

const MAX_UNBOOKED = 100_000;
/** A batch that cannot be placed at once is sent again: with the right day, under a new name. */
const MAX_TRIES = 4;
const BEATS_PER_LEASE = 5;
const SLOWEST_BEAT_MS = 60_000;

interface Operation {
  /** As the script reads it. */
  readonly wire: Readonly<Record<string, unknown>>;
  readonly done: (answer: readonly number[], moment: BatchMoment) => void;
  /** @param tried The batch that may have been run, if there is one. */
  readonly failed: (error: OwlError, tried: Tried | undefined) => void;
}

type Tried = readonly [holder: string, seq: number];

interface Unbooked {
  readonly lease: Lease;
  readonly costMicros: number;
  readonly tried: readonly Tried[];
}

/**
 * Counts in a place that several servers share, by its clock. What is asked while one batch is under way goes into the
 * next one. A server that gives no sign of life loses what it held.
 */
export class SharedLimitStore implements LimitStore {
  readonly #options: SharedLimitStoreOptions;
  readonly #holders = new Holders();
  readonly #heart: NodeJS.Timeout;
  #calendar: Calendar;
  #today: { readonly fromMs: number; readonly day: Day };
  #queue: Operation[] = [];
  /** What was spent and could not be booked, or perhaps was: the script knows. */
  #unbooked: Unbooked[] = [];
  #soon: NodeJS.Immediate | undefined;
  #batch: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: SharedLimitStoreOptions) {
    this.#options = options;
    this.#calendar = new Calendar(options.timeZone());
    this.#today = this.#dayAt(options.clock?.wallMs() ?? Date.now());
    options.engine.onReturn(() => this.#beat());
    this.#heart = setInterval(() => this.#beat(), Math.min(options.leaseMs / BEATS_PER_LEASE, SLOWEST_BEAT_MS));
    this.#heart.unref();
  }

  /** Under which name it holds places at the moment. */
  get holder(): string {
    return this.#holders.current;
  }

  admit({ counters, reserveMicros }: AdmitRequest): Promise<Admission> {
    return this.#ask<Admission>(
      { op: "admit", counters: counters.map(toWire), reserve: reserveMicros },
      (answer, at) => {
        const lease = { counters, reserveMicros, month: at.day.month, holder: this.#holders.current };
        const admission = readAdmission(answer, lease, at);
        if (admission.ok) this.#holders.take();
        return admission;
      },
    );
  }

  settle(lease: Lease, costMicros: number): Promise<readonly Crossing[]> {
    return new Promise((resolve, reject) => {
      const settled = (crossings: readonly Crossing[]): void => resolve(crossings);
      this.#enqueue(this.#settlement({ lease, costMicros, tried: [] }, { settled, failed: reject }));
    });
  }

  usage(counters: readonly Counter[]): Promise<readonly Used[]> {
    return this.#ask({ op: "usage", counters: counters.map(toWire) }, (answer, at) => readUsage(answer, counters, at));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    clearInterval(this.#heart);
    this.#beat();
    while (this.#batch !== undefined) await this.#batch;
    this.#isClosed = true;
    const { engine, space = engine.space } = this.#options;
    const holders = [this.#holders.current, ...this.#holders.others];
    // A server that cannot say good-bye is missed a lease later.
    await engine.forget(space, holders).catch(() => undefined);
  }

  /** Leaves everything as a killed server would; for tests. */
  abandon(): void {
    clearInterval(this.#heart);
    this.#isClosed = true;
  }

  #ask<T>(wire: Operation["wire"], read: (answer: readonly number[], at: BatchMoment) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#enqueue({ wire, done: (answer, at) => resolve(read(answer, at)), failed: reject });
    });
  }

  #settlement(
    unbooked: Unbooked,
    on: { settled(crossings: readonly Crossing[]): void; failed(error: OwlError): void },
  ): Operation {
    const { lease, costMicros, tried } = unbooked;
    const { counters, month, reserveMicros, holder = "" } = lease;
    return {
      wire: {
        op: "settle",
        counters: counters.map(toWire),
        month,
        reserve: reserveMicros,
        cost: costMicros,
        holder,
        tried,
      },
      done: (answer) => {
        this.#holders.give(holder);
        on.settled(readCrossings(answer, lease, costMicros));
      },
      failed: (error, batch) => {
        const more = batch === undefined ? tried : [...tried, batch];
        if (this.#unbooked.length < MAX_UNBOOKED) this.#unbooked.push({ lease, costMicros, tried: more });
        on.failed(error);
      },
    };
  }

  #enqueue(operation: Operation): void {
    if (this.#isClosed) return operation.failed(unavailable(new Error("it is closed")), undefined);
    this.#queue.push(operation);
    if (this.#batch === undefined) this.#soon ??= setImmediate(() => this.#flush());
  }

  /** A sign of life, and another try for what could not be booked. */
  #beat(): void {
    if (!this.#isClosed && this.#batch === undefined) this.#flush();
  }

  #flush(): void {
    clearImmediate(this.#soon);
    this.#soon = undefined;
    const late = this.#unbooked;
    this.#unbooked = [];
    const nobody = { settled: () => undefined, failed: () => undefined };
    const operations = [...late.map((each) => this.#settlement(each, nobody)), ...this.#queue];
    this.#queue = [];
    this.#batch = this.#send(operations).finally(() => {
      this.#batch = undefined;
      if (this.#queue.length > 0) this.#flush();
    });
  }

  async #send(operations: readonly Operation[]): Promise<void> {
    const { engine } = this.#options;
    const fail = (error: unknown, tried: Tried | undefined): void =>
      operations.forEach(({ failed }) => failed(unavailable(error), tried));
    if (!engine.isReady) return fail(new Error("not connected"), undefined);
    for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
      const holder = this.#holders.current;
      const seq = this.#holders.nextSeq();
      try {
        const batch = this.#toWire(operations, seq);
        const reply = toReply(await engine.run(batch));
        if (reply.verdict === "ok") return this.#answer(operations, reply);
        if (reply.verdict === "holder") this.#holders.renew({ isDoubtful: false });
        else this.#today = this.#dayAt(reply.wallMs);
      } catch (error) {
        this.#holders.renew({ isDoubtful: true });
        return fail(error, [holder, seq]);
      }
    }
    fail(new Error("the clock of the store does not stand still"), undefined);
  }

  #toWire(operations: readonly Operation[], seq: number): string {
    const { clock, engine, leaseMs, space = engine.space, timeZone } = this.#options;
    if (timeZone() !== this.#calendar.timeZone) {
      this.#calendar = new Calendar(timeZone());
      this.#today = this.#dayAt(this.#today.fromMs);
    }
    const { fromMs, day } = this.#today;
    return JSON.stringify({
      prefix: space,
      holder: this.#holders.current,
      is_new: this.#holders.isNew,
      also: this.#holders.others,
      drop: this.#holders.drop,
      fence: this.#holders.fence,
      seq,
      lease: leaseMs,
      from: fromMs,
      till: day.endsAtMs,
      day: day.day,
      month: day.month,
      ...(clock !== undefined && { clock: [clock.wallMs(), clock.steadyMs()] }),
      ops: operations.map(({ wire }) => wire),
    });
  }

  #answer(operations: readonly Operation[], { wallMs, steadyMs, answers }: Reply): void {
    this.#holders.known();
    this.#holders.drop = [];
    this.#holders.fence = [];
    const moment = { wallMs, steadyMs, day: this.#today.day };
    operations.forEach(({ done }, index) => done(answers[index] ?? [], moment));
  }

  #dayAt(wallMs: number): { readonly fromMs: number; readonly day: Day } {
    return { fromMs: wallMs, day: this.#calendar.at(wallMs) };
  }
}

interface Reply {
  readonly verdict: "ok" | "day" | "holder";
  readonly wallMs: number;
  readonly steadyMs: number;
  readonly answers: readonly (readonly number[])[];
}

function toReply(reply: unknown): Reply {
  const parts: readonly unknown[] = Array.isArray(reply) ? reply : [];
  const [verdict, wallMs, steadyMs, answers] = parts;
  if (verdict !== "ok" && verdict !== "day" && verdict !== "holder")
    throw new TypeError("the store gave an answer that nobody can read");
  const list: readonly unknown[] = Array.isArray(answers) ? answers : [];
  return { verdict, wallMs: Number(wallMs), steadyMs: Number(steadyMs), answers: list.map(toNumbers) };
}

function toNumbers(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.map(Number) : [];
}

function unavailable(cause: unknown): OwlError {
  return new OwlError("store_unavailable", "calls cannot be counted at the moment, so none is let through", { cause });
}
