import type { GuestParams, GuestResult } from "../../contract/guest.ts";
import { randomBytes } from "node:crypto";
import { deferred, isDoneWithin } from "../deferred.ts";
import { Failure } from "../failure.ts";
import type { OutputFile, OutputFiles } from "../output/output-files.ts";
import type { ProcessExit, RunningProcess } from "../processes/running-process.ts";

const RING_CHARS = 1024 * 1024;
const FINISHED_KEPT_MAX = 64;
const KILL_WAIT_MS = 2_000;
const KILL_OUTPUT_CHARS = 20_000;

/** A program in the background, with its latest output. */
class BackgroundProcess {
  readonly file: OutputFile;
  readonly #process: RunningProcess;
  readonly #ring = new OutputRing(RING_CHARS);
  #news = deferred();
  #exit: ProcessExit | undefined;
  #lastCursor = 0;

  constructor(child: RunningProcess, file: OutputFile) {
    this.#process = child;
    this.file = file;
    for (const pipe of [child.stdout, child.stderr]) {
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      pipe.onData((chunk) => this.#add(decoder.decode(chunk, { stream: true })));
    }
    void child.exited.then(async (exit) => {
      await Promise.all([child.stdout.drain(), child.stderr.drain()]);
      this.#exit = exit;
      this.#announce();
      // Its descendants may still write output.
      void child.gone.then(() => child.release());
    });
    void child.gone.then(() => this.file.close());
  }

  get isRunning(): boolean {
    return this.#exit === undefined;
  }

  async read({
    cursor,
    maxChars,
    waitMs,
  }: Omit<GuestParams["shell.output"], "processId">): Promise<GuestResult<"shell.output">> {
    const hasNews = this.#ring.totalChars > cursor || !this.isRunning;
    if (!hasNews && waitMs > 0) await isDoneWithin(this.#news.promise, waitMs);
    const part = this.#ring.read(cursor, maxChars);
    this.#lastCursor = part.cursor;
    const isRunning = this.isRunning;
    return { ...part, isRunning, exitCode: this.#exit?.code ?? null, signal: this.#exit?.signal ?? null };
  }

  async kill(signal: GuestParams["shell.kill"]["signal"]): Promise<GuestResult<"shell.output">> {
    if (signal === "SIGKILL") await this.#process.end();
    else this.#process.signal(signal);
    await isDoneWithin(this.#process.exited, KILL_WAIT_MS);
    return await this.read({ cursor: this.#lastCursor, maxChars: KILL_OUTPUT_CHARS, waitMs: 0 });
  }

  #add(text: string): void {
    if (text === "") return;
    this.#ring.push(text);
    this.file.write(text);
    this.#announce();
  }

  #announce(): void {
    const news = this.#news;
    this.#news = deferred();
    news.resolve();
  }
}

/** The programs that run in the background. */
export class BackgroundProcesses {
  readonly #processes = new Map<string, BackgroundProcess>();
  readonly #files: OutputFiles;

  constructor(files: OutputFiles) {
    this.#files = files;
  }

  add(child: RunningProcess): GuestResult<"shell.exec"> {
    const processId = randomBytes(12).toString("base64url");
    const added = new BackgroundProcess(child, this.#files.create());
    this.#processes.set(processId, added);
    this.#forgetOldest();
    return {
      status: "running",
      exitCode: null,
      signal: null,
      stdout: { text: "", totalChars: 0, ...added.file.reference },
      stderr: { text: "", totalChars: 0 },
      durationMs: 0,
      processId,
      leftRunning: [],
    };
  }

  async read(params: GuestParams["shell.output"]): Promise<GuestResult<"shell.output">> {
    return await this.#find(params.processId).read(params);
  }

  async kill({ processId, signal }: GuestParams["shell.kill"]): Promise<GuestResult<"shell.output">> {
    return await this.#find(processId).kill(signal);
  }

  #find(processId: string): BackgroundProcess {
    const found = this.#processes.get(processId);
    if (found !== undefined) return found;
    const hint = "use the process id that shell_exec returned with background: true";
    throw new Failure(
      "unknown_process",
      `no background process has the id ${JSON.stringify(processId.slice(0, 64))}`,
      hint,
    );
  }

  #forgetOldest(): void {
    const finished = [...this.#processes].filter(([, { isRunning }]) => !isRunning);
    for (const [processId] of finished.slice(0, -FINISHED_KEPT_MAX)) this.#processes.delete(processId);
  }
}

/** The latest part of an unbounded text, addressed by the number of characters before it. */
export class OutputRing {
  readonly #maxChars: number;
  #pieces: string[] = [];
  #keptChars = 0;
  #totalChars = 0;

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  get totalChars(): number {
    return this.#totalChars;
  }

  push(text: string): void {
    this.#pieces.push(text);
    this.#keptChars += text.length;
    this.#totalChars += text.length;
    for (let first = this.#pieces[0]; first !== undefined; first = this.#pieces[0]) {
      if (this.#keptChars - first.length < this.#maxChars) break;
      this.#pieces.shift();
      this.#keptChars -= first.length;
    }
  }

  read(cursor: number, maxChars: number): { text: string; cursor: number; skippedChars: number } {
    const firstKept = this.#totalChars - this.#keptChars;
    const from = Math.min(Math.max(cursor, firstKept), this.#totalChars);
    const text = this.#pieces.join("").slice(from - firstKept, from - firstKept + maxChars);
    // Half of a surrogate pair waits for the other half.
    const whole = text.length > 1 && /[\uD800-\uDBFF]$/u.test(text) ? text.slice(0, -1) : text;
    return { text: whole, cursor: from + whole.length, skippedChars: Math.max(0, from - cursor) };
  }
}
