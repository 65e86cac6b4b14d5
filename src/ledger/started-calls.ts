import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  futimesSync,
  mkdirSync,
  openSync,
  rmSync,
  writeSync,
} from "node:fs";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { OwlError } from "../errors/owl-error.ts";
import { identifySelf } from "../processes/identity.ts";
import type { LedgerKeys } from "./keys.ts";
import { COLUMNS, type Draft } from "./row.ts";
import { ENDING, sealLine, settledAs, type StartedLine, startedFolder } from "./started-lines.ts";

/** What a call has reserved: its row says so, and its budgets pay it, if the process ends before the call does. */
export interface ReservedCost {
  readonly micros: number;
  /** Keys of the budgets. */
  readonly budgets: readonly string[];
}

/** A call that has begun and has no row yet. */
export interface StartedCall {
  readonly number: number;
  readonly draft: Draft;
  readonly reserved: ReservedCost;
  /** As in the draft, for the row. */
  readonly argsText: string;
  /** What was taken out of the arguments. */
  readonly secrets: readonly string[] | undefined;
}

const ARGS_AT = COLUMNS.indexOf("args") - 1;

const ANEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND | constants.O_NOFOLLOW;
/** A file with calls that have ended is begun anew at this size. */
const MAX_BYTES = 4 * 1024 * 1024;
/** A process in another container cannot be looked up: its file shows that it lives. */
const TOUCH_MS = 30_000;

/**
 * The calls that this process has begun, in a file of its own: a line before a call begins, another when its row is on
 * disk. A process that is killed leaves the file, and the next one makes rows of it. The lines are not synced: a power
 * cut ends the calls as well. Each line has a MAC, so that nobody without the key can put calls into the ledger.
 */
export class StartedCalls {
  readonly #keys: LedgerKeys;
  readonly #path: string;
  readonly #folder: string;
  readonly #open = new Map<number, StartedCall>();
  readonly #timer: NodeJS.Timeout;
  #file: number | undefined;
  #bytes = 0;
  #last = 0;
  /** Lines of calls that have ended, written with the next one: until then the rows themselves tell. */
  #ended = "";

  constructor(dataFolder: string, keys: LedgerKeys) {
    this.#keys = keys;
    this.#folder = startedFolder(dataFolder);
    this.#path = join(this.#folder, `${process.pid}-${randomBytes(6).toString("hex")}${ENDING}`);
    this.#timer = setInterval(() => this.#touch(), TOUCH_MS).unref();
  }

  /** The name of the file, which this process does not recover. */
  get path(): string {
    return this.#path;
  }

  /** @throws OwlError when it cannot be recorded: the call must not run then. */
  begin(draft: Draft, { reserved, secrets }: Pick<StartedCall, "reserved" | "secrets">): StartedCall {
    const argsText = String(draft[ARGS_AT]);
    const call = { number: (this.#last += 1), draft, reserved, argsText, secrets };
    this.#write({ call: call.number, draft, reserved });
    this.#open.set(call.number, call);
    return call;
  }

  /** From now on this is the row that is missing if the process ends. */
  continues(call: StartedCall, draft: Draft, reserved: ReservedCost): void {
    this.#open.set(call.number, { ...call, draft, reserved });
    this.#write({ call: call.number, draft, reserved });
  }

  /** Its cost is about to be booked: only the row is missing then. */
  settles({ number }: StartedCall, micros: number): void {
    const call = this.#open.get(number);
    if (call === undefined) return;
    this.#open.set(number, { ...call, ...settledAs(call.draft, micros) });
    this.#write({ settled: number, micros });
  }

  end({ number }: StartedCall): void {
    if (!this.#open.delete(number)) return;
    this.#ended += sealLine(this.#keys, this.#path, { ended: number });
  }

  close(): void {
    clearInterval(this.#timer);
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    if (this.#open.size === 0) rmSync(this.#path, { force: true });
  }

  #write(line: StartedLine): void {
    try {
      this.#append(sealLine(this.#keys, this.#path, line));
    } catch (error) {
      throw new OwlError("store_unavailable", "the start of the call could not be recorded", { cause: error });
    }
  }

  #append(text: string): void {
    const file = this.#opened();
    if (this.#open.size === 0 || this.#bytes === 0 || this.#bytes > MAX_BYTES) this.#restart(file);
    const bytes = Buffer.from(`${this.#ended}${text}`);
    this.#ended = "";
    this.#put(file, bytes);
  }

  #put(file: number, bytes: Buffer): void {
    const written = writeSync(file, bytes);
    if (written < bytes.length) {
      // The next line must not continue half a line.
      ftruncateSync(file, this.#bytes);
      throw new Error(`only ${written} of ${bytes.length} bytes could be written`);
    }
    this.#bytes += written;
  }

  /** In one write behind the header: a process that is killed in between leaves a file without calls, and has a row of each. */
  #restart(file: number): void {
    ftruncateSync(file, 0);
    this.#bytes = 0;
    this.#ended = "";
    this.#put(file, Buffer.from(`${this.#header()}${this.#openLines()}`));
  }

  #openLines(): string {
    const lines = [...this.#open.values()].map(({ number, draft, reserved }) =>
      sealLine(this.#keys, this.#path, { call: number, draft, reserved }),
    );
    return lines.join("");
  }

  #header(): string {
    return sealLine(this.#keys, this.#path, { process: identifySelf() });
  }

  /** A file that was removed is made again, with the calls that are open. */
  #opened(): number {
    if (this.#file !== undefined && fstatSync(this.#file).nlink > 0) return this.#file;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    this.#file = openSync(this.#path, ANEW, 0o600);
    this.#bytes = 0;
    this.#put(this.#file, Buffer.from(`${this.#header()}${this.#openLines()}`));
    return this.#file;
  }

  #touch(): void {
    if (this.#file === undefined) return;
    try {
      const now = new Date();
      futimesSync(this.#file, now, now);
    } catch {
      // The next call finds out that the file cannot be written.
    }
  }
}
