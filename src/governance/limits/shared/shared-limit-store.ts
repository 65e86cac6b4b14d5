import { OwlError } from "../../../errors/owl-error.ts";
import type { Counter } from "../../policy/terms.ts";
import { Calendar, type Day } from "../calendar.ts";
import type { Clock } from "../clock.ts";
import {
  type Admission,
  type AdmitRequest,
  countersOf,
  type Crossing,
  type Lease,
  type LimitStore,
  type Used,
} from "../limit-store.ts";
import { Holders } from "./holders.ts";
import { type BatchMoment, readAdmission, readCrossings, readUsage, toWire } from "./limit-answers.ts";
import type { LimitEngine } from "./limit-engine.ts";
import { type Reply, toReply } from "./limit-reply.ts";
import { OpenLeases } from "./open-leases.ts";
import { type SpendMemory, spendsOf } from "./spend-memory.ts";
import { settlementToWire, type Tried, type Unbooked } from "./unbooked.ts";

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
/** In place of an answer, while servers that live may hold what nobody has counted yet. */
const NOT_YET = -1;
const BEATS_PER_LEASE = 5;
const SLOWEST_BEAT_MS = 60_000;

interface Operation {
  /** As the script reads it. */
  readonly wire: Readonly<Record<string, unknown>>;
  readonly done: (answer: readonly number[], moment: BatchMoment) => void;
  /** @param tried The batch that may have been run, if there is one. */
  readonly failed: (error: OwlError, tried: Tried | undefined) => void;
}

/**
 * Counts in a place that several servers share, by its clock. What is asked while one batch is under way goes into the
 * next one. A server that gives no sign of life loses what it held.
 */
export class SharedLimitStore implements LimitStore {
  readonly #options: SharedLimitStoreOptions;
  readonly #holders = new Holders();
  readonly #leases = new OpenLeases();
  readonly #memory: SpendMemory | undefined;
  readonly #heart: NodeJS.Timeout;
  #calendar: Calendar;
  #today: { readonly fromMs: number; readonly day: Day };
  #queue: Operation[] = [];
  /** What was spent and could not be booked, or perhaps was: the script knows. */
  #unbooked: Unbooked[] = [];
  #soon: NodeJS.Immediate | undefined;
  #batch: Promise<void> | undefined;
  /** Whether the memory of the engine has to be told what this server holds. */
  #isUnheard = false;
  #isClosed = false;

  constructor(options: SharedLimitStoreOptions) {
    this.#options = options;
    const { engine, leaseMs, space = engine.space } = options;
    this.#memory = engine.memoryOf?.(space, leaseMs);
    this.#calendar = new Calendar(options.timeZone());
    this.#today = this.#dayAt(options.clock?.wallMs() ?? Date.now());
    engine.onReturn(() => this.#beat());
    this.#heart = setInterval(() => this.#beat(), Math.min(leaseMs / BEATS_PER_LEASE, SLOWEST_BEAT_MS));
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
        if (admission.ok) {
          this.#holders.take();
          this.#leases.add(lease);
        }
        return admission;
      },
    );
  }

  async settle(lease: Lease, costMicros: number): Promise<readonly Crossing[]> {
    const memory = this.#memory;
    const spends = spendsOf(lease, costMicros);
    const settlement = { lease, costMicros, tried: [], isLast: false };
    if (memory === undefined || spends.length === 0) return this.#settle({ ...settlement, booking: undefined });
    const booking = this.#leases.book(lease, memory.epoch);
    const settled = this.#settle({ ...settlement, booking });
    let more: readonly Crossing[] = [];
    const paid = memory.pay(spends, async (epoch) => {
      booking.paidIn = epoch;
      more = await this.#conclude({ ...settlement, booking });
    });
    const [crossings] = await Promise.all([settled, paid]);
    return [...crossings, ...more];
  }

  async charge(budgets: readonly string[], costMicros: number): Promise<void> {
    const admission = await this.admit({ counters: countersOf(budgets), reserveMicros: 0 });
    if (admission.ok) await this.settle(admission.lease, costMicros);
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
    await this.#memory?.leave();
  }

  /** Leaves everything as a killed server would; for tests. */
  abandon(): void {
    clearInterval(this.#heart);
    this.#isClosed = true;
  }

  #ask<T>(wire: Operation["wire"], read: (answer: readonly number[], at: BatchMoment) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const done: Operation["done"] = (answer, at) => {
        if (answer[0] === NOT_YET) reject(unavailable(new Error("not all servers have said what they hold")));
        else resolve(read(answer, at));
      };
      this.#enqueue({ wire, done, failed: reject });
    });
  }

  #settle(unbooked: Unbooked): Promise<readonly Crossing[]> {
    return new Promise((resolve, reject) => {
      this.#enqueue(this.#settlement(unbooked, { settled: resolve, failed: reject }));
    });
  }

  #settlement(
    unbooked: Unbooked,
    on: { settled(crossings: readonly Crossing[]): void; failed(error: OwlError): void },
  ): Operation {
    const { lease, costMicros, tried } = unbooked;
    return {
      wire: settlementToWire(unbooked),
      done: (answer) => {
        const crossings = readCrossings(answer, lease, costMicros);
        this.#returned(unbooked).then(
          (more) => on.settled([...crossings, ...more]),
          (error: unknown) => on.failed(unavailable(error)),
        );
      },
      failed: (error, batch) => {
        const more = batch === undefined ? tried : [...tried, batch];
        if (this.#unbooked.length < MAX_UNBOOKED) this.#unbooked.push({ ...unbooked, tried: more });
        on.failed(error);
      },
    };
  }

  async #returned(unbooked: Unbooked): Promise<readonly Crossing[]> {
    const { lease, booking, isLast } = unbooked;
    if (booking === undefined || isLast) {
      this.#release(lease);
      return [];
    }
    booking.isReturned = true;
    const epoch = this.#memory?.epoch;
    // A memory that it was not meant for has not counted it, and keeps the money for it until that is clear.
    if (booking.epoch === epoch) booking.givenIn = epoch;
    return this.#conclude(unbooked);
  }

  /** When a call has both given back what it held and is on file with what it cost. */
  async #conclude(unbooked: Unbooked): Promise<readonly Crossing[]> {
    const { lease, booking } = unbooked;
    if (booking?.paidIn === undefined || !booking.isReturned) return [];
    const isCounted = booking.givenIn === booking.paidIn;
    if (!isCounted || (this.#memory?.epoch !== booking.paidIn && !this.#isUnheard))
      return this.#settle({ ...unbooked, tried: [], isLast: true });
    this.#release(lease);
    return [];
  }

  #release(lease: Lease): void {
    this.#leases.delete(lease);
    this.#holders.give(lease.holder ?? "");
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
      let reply: Reply;
      try {
        const batch = this.#toWire(operations, seq);
        reply = toReply(await engine.run(batch));
        if (reply.verdict === "ok") return this.#answer(operations, reply, seq);
      } catch (error) {
        this.#holders.renew({ isDoubtful: true });
        return fail(error, [holder, seq]);
      }
      try {
        await this.#adapt(reply);
      } catch (error) {
        return fail(error, undefined);
      }
    }
    fail(new Error("the store does not stand still"), undefined);
  }

  /** Before a batch that was not run is sent again. */
  async #adapt({ verdict, wallMs }: Reply): Promise<void> {
    if (verdict === "day") this.#today = this.#dayAt(wallMs);
    else this.#holders.renew({ isDoubtful: false });
    if (verdict !== "lost" && verdict !== "stale") return;
    this.#isUnheard = true;
    await this.#memory?.recover({ isStale: verdict === "stale" });
    // What was on file before this memory began is in it: it must not be held in it as well.
    await this.#memory?.paid();
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
      ...this.#memoryToWire(),
      ops: operations.map(({ wire }) => wire),
    });
  }

  #memoryToWire(): Readonly<Record<string, unknown>> | undefined {
    if (this.#memory === undefined) return undefined;
    const { epoch, member } = this.#memory;
    const { acked } = this.#holders;
    return this.#isUnheard ? { epoch, member, acked, held: this.#leases.toWire(epoch) } : { epoch, acked };
  }

  #answer(operations: readonly Operation[], { wallMs, steadyMs, answers }: Reply, seq: number): void {
    this.#holders.known(seq);
    this.#isUnheard = false;
    this.#holders.drop = [];
    this.#holders.fence = [];
    const moment = { wallMs, steadyMs, day: this.#today.day };
    operations.forEach(({ done }, index) => done(answers[index] ?? [], moment));
  }

  #dayAt(wallMs: number): { readonly fromMs: number; readonly day: Day } {
    return { fromMs: wallMs, day: this.#calendar.at(wallMs) };
  }
}

function unavailable(cause: unknown): OwlError {
  return new OwlError("store_unavailable", "calls cannot be counted at the moment, so none is let through", { cause });
}
