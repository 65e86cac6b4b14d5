import type { BoundedText, GuestParams, GuestResult, Language, CodeError, Picture } from "../../contract/guest.ts";
import { isDoneWithin } from "../deferred.ts";
import { CallOutput } from "../output/bounded-output.ts";
import type { SendOutput } from "../output/output-batches.ts";
import type { OutputFiles } from "../output/output-files.ts";
import type { ProcessExit } from "../processes/running-process.ts";
import { noteTiming } from "../timings.ts";
import type { Interpreter, Reply, OutputListeners } from "./interpreter.ts";
import { isRecord } from "../processes/line-reader.ts";

const WARM_MS_MAX = 60_000;
/** The first runs load and compile the code path; the rest let V8 optimise it. */
const REHEARSALS = 10;
const REHEARSAL_CODE: Readonly<Record<Language, string>> = { python: "print()", node: "console.log()" };
const NOTHING: BoundedText = { text: "", totalChars: 0 };
const KEPT_BYTES_MAX = 16_384;
const MIME_TYPES: readonly Picture["mimeType"][] = ["image/png", "image/jpeg", "image/svg+xml"];

interface CodeRunnerOptions {
  readonly language: Language;
  readonly start: () => Promise<Interpreter>;
  readonly files: OutputFiles;
  readonly send: SendOutput;
}

type Outcome =
  | { readonly status: "answered"; readonly answer: RunAnswer }
  | { readonly status: "timeout" | "cancelled" }
  | { readonly status: "crashed"; readonly exit: ProcessExit };

/** Runs code of one language: one interpreter, which keeps its state, and one run at a time. */
export class CodeRunner {
  readonly #options: CodeRunnerOptions;
  readonly #earlier = new EarlierOutput();
  #interpreter: Interpreter | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  /** Variables were lost, and no result has reported it yet. */
  #hasLostState = false;

  constructor(options: CodeRunnerOptions) {
    this.#options = options;
  }

  async warm(preload: readonly string[]): Promise<void> {
    await this.#inTurn(async () => {
      const isFresh = this.#interpreter === undefined;
      const interpreter = await this.#ensureInterpreter();
      const warmed = this.#prepare(interpreter, { preload, isFresh });
      if (await isDoneWithin(warmed, WARM_MS_MAX)) return;
      this.#interpreter = undefined;
      await interpreter.end();
    });
  }

  async run(params: GuestParams["code.run"], signal: AbortSignal): Promise<GuestResult<"code.run">> {
    const askedMs = performance.now();
    return await this.#inTurn(async () => {
      noteTiming("queue", askedMs, performance.now() - askedMs);
      if (signal.aborted) return this.#neverRan();
      return await this.#runNow(params, signal);
    });
  }

  async #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#queue.then(action);
    this.#queue = turn.catch(() => {});
    return await turn;
  }

  async #prepare(
    interpreter: Interpreter,
    { preload, isFresh }: { preload: readonly string[]; isFresh: boolean },
  ): Promise<void> {
    if (preload.length > 0) await interpreter.ask({ preload });
    if (!isFresh) return;
    await this.#rehearse();
    await interpreter.ask({ startOver: true });
  }

  /** Warm-up: the first run of a process is milliseconds slower. These runs take the whole code path and change no state. */
  async #rehearse(): Promise<void> {
    const { language } = this.#options;
    const { signal } = new AbortController();
    const params = { callId: "", language, code: REHEARSAL_CODE[language], timeoutMs: WARM_MS_MAX, maxOutputChars: 1 };
    for (let times = 0; times < REHEARSALS; times += 1) {
      if ((await this.#runNow(params, signal)).status !== "ok") break;
    }
    // There was no state to lose.
    this.#hasLostState = false;
    this.#earlier.clear();
  }

  async #runNow(params: GuestParams["code.run"], signal: AbortSignal): Promise<GuestResult<"code.run">> {
    const startMs = performance.now();
    const interpreter = await this.#ensureInterpreter();
    const earlierOutput = this.#earlier.take();
    const output = new CallOutput({ ...params, files: this.#options.files, send: this.#options.send });
    interpreter.listen(output);
    const sentMs = performance.now();
    const outcome = await waitForOutcome(interpreter, params, signal);
    noteRun(outcome, sentMs);
    if (outcome.status !== "answered") {
      await interpreter.end();
      this.#interpreter = undefined;
      this.#hasLostState = true;
    }
    await interpreter.drain();
    interpreter.listen(this.#earlier);
    return {
      ...this.#describe(outcome, params),
      ...output.finish(),
      durationMs: performance.now() - startMs,
      interpreterRestarted: this.#takeLostState(outcome.status),
      leftRunning: outcome.status === "answered" ? interpreter.descendants() : [],
      ...(earlierOutput === undefined ? {} : { earlierOutput }),
    };
  }

  async #ensureInterpreter(): Promise<Interpreter> {
    const current = this.#interpreter;
    if (current?.isAlive === true) return current;
    if (current !== undefined) {
      this.#hasLostState = true;
      // It may have left processes behind when it crashed.
      await current.end();
    }
    const startMs = performance.now();
    this.#interpreter = await this.#options.start();
    noteTiming("interpreter.start", startMs, performance.now() - startMs);
    return this.#interpreter;
  }

  #describe(
    outcome: Outcome,
    params: GuestParams["code.run"],
  ): Pick<GuestResult<"code.run">, "status" | "value" | "error" | "pictures"> {
    switch (outcome.status) {
      case "answered":
        return this.#withHtmlFile(outcome.answer);
      case "crashed":
        return { status: "crashed", pictures: [], error: crashError(this.#options.language, outcome.exit) };
      case "timeout": {
        const message = `the code took longer than ${params.timeoutMs / 1000} s and was ended with everything it had started; its variables are gone`;
        return { status: "timeout", pictures: [], error: { name: "TimeoutError", message, traceback: "" } };
      }
      case "cancelled":
        return { status: "cancelled", pictures: [] };
    }
  }

  /** Also writes the HTML form to a file, which the caller can read. */
  #withHtmlFile(answer: RunAnswer): RunAnswer {
    if (answer.value?.html === undefined) return answer;
    const file = this.#options.files.create();
    file.write(answer.value.html);
    file.close();
    return { ...answer, value: { ...answer.value, ...file.reference } };
  }

  /** The client does not see the result of a cancelled call, so the next result reports the loss again. */
  #takeLostState(status: Outcome["status"]): boolean {
    const hasLostState = this.#hasLostState;
    this.#hasLostState = hasLostState && status === "cancelled";
    return hasLostState;
  }

  #neverRan(): GuestResult<"code.run"> {
    return {
      status: "cancelled",
      stdout: NOTHING,
      stderr: NOTHING,
      pictures: [],
      durationMs: 0,
      interpreterRestarted: false,
      leftRunning: [],
    };
  }
}

/** The interpreter's own measurement, centred in the time that passed here; the rest is transfer. */
function noteRun(outcome: Outcome, sentMs: number): void {
  const passedMs = performance.now() - sentMs;
  const measured = outcome.status === "answered" ? outcome.answer.durationMs : undefined;
  const durationMs = Math.min(measured ?? passedMs, passedMs);
  noteTiming("interpreter.run", sentMs + (passedMs - durationMs) / 2, durationMs);
}

async function waitForOutcome(
  interpreter: Interpreter,
  params: GuestParams["code.run"],
  signal: AbortSignal,
): Promise<Outcome> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort = (): void => {};
  const interrupted = new Promise<Outcome>((resolve) => {
    timer = setTimeout(() => resolve({ status: "timeout" }), Math.min(params.timeoutMs, 2 ** 31 - 1));
    onAbort = () => resolve({ status: "cancelled" });
    signal.addEventListener("abort", onAbort);
  });
  const ended = interpreter.ask({ code: params.code, maxChars: params.maxOutputChars }).then(toOutcome);
  try {
    return await Promise.race([ended, interrupted]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function toOutcome(reply: Reply): Outcome {
  if (reply.status === "exited") return { status: "crashed", exit: reply.exit };
  const answer = parseRunAnswer(reply.answer);
  return answer === undefined
    ? { status: "crashed", exit: { code: null, signal: null } }
    : { status: "answered", answer };
}

function crashError(language: Language, { code, signal }: ProcessExit): NonNullable<GuestResult<"code.run">["error"]> {
  const reason =
    signal !== null
      ? `was ended by ${signal}`
      : code !== null
        ? `ended with exit code ${code}`
        : "gave no valid answer";
  const message = `the ${language} interpreter ${reason}; its variables are gone, and the next call starts a fresh one`;
  return { name: "InterpreterCrashed", message, traceback: "" };
}

/** Output of threads, timers and processes between two runs. It belongs to no call and is part of the next result. */
class EarlierOutput implements OutputListeners {
  #chunks: Buffer[] = [];
  #keptBytes = 0;
  #lostBytes = 0;

  readonly onStdout = (chunk: Buffer): void => this.#add(chunk);
  readonly onStderr = (chunk: Buffer): void => this.#add(chunk);

  /** Everything since the last call of `take`, in order. */
  take(): string | undefined {
    if (this.#chunks.length === 0) return undefined;
    const bytes = Buffer.concat(this.#chunks);
    const lostBytes = this.#lostBytes + Math.max(0, bytes.length - KEPT_BYTES_MAX);
    this.clear();
    // A character that is cut becomes a replacement character.
    const text = bytes.subarray(-KEPT_BYTES_MAX).toString("utf8");
    return lostBytes === 0 ? text : `[… ${lostBytes} bytes before this are not kept …]\n${text}`;
  }

  clear(): void {
    this.#chunks = [];
    this.#keptBytes = 0;
    this.#lostBytes = 0;
  }

  #add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#keptBytes += chunk.length;
    while (this.#keptBytes - (this.#chunks[0]?.length ?? 0) >= KEPT_BYTES_MAX) {
      const lost = this.#chunks.shift()?.length ?? 0;
      this.#keptBytes -= lost;
      this.#lostBytes += lost;
    }
  }
}

/** A driver's answer about one run. */
interface RunAnswer {
  readonly status: "ok" | "error";
  readonly value?: NonNullable<GuestResult<"code.run">["value"]>;
  readonly error?: CodeError;
  readonly pictures: readonly Picture[];
  /** As the interpreter measured it. */
  readonly durationMs?: number;
}

/** Validates the answer: user code can write to the driver's descriptors too. */
function parseRunAnswer(answer: unknown): RunAnswer | undefined {
  if (!isRecord(answer) || (answer["status"] !== "ok" && answer["status"] !== "error")) return undefined;
  const value = toValue(answer["value"]);
  const error = toError(answer["error"]);
  const pictures: unknown = answer["pictures"];
  return {
    status: answer["status"],
    ...(value === undefined ? {} : { value }),
    ...(error === undefined ? {} : { error }),
    pictures: Array.isArray(pictures) ? pictures.flatMap(toPicture) : [],
    ...(isDuration(answer["ms"]) && { durationMs: answer["ms"] }),
  };
}

function isDuration(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function toValue(value: unknown): RunAnswer["value"] {
  if (!isRecord(value) || typeof value["text"] !== "string") return undefined;
  return { text: value["text"], ...(typeof value["html"] === "string" ? { html: value["html"] } : {}) };
}

function toError(value: unknown): CodeError | undefined {
  if (!isRecord(value)) return undefined;
  return { name: String(value["name"]), message: String(value["message"]), traceback: String(value["traceback"]) };
}

function toPicture(value: unknown): Picture[] {
  if (!isRecord(value) || typeof value["data"] !== "string") return [];
  const mimeType = MIME_TYPES.find((known) => known === value["mimeType"]);
  return mimeType === undefined ? [] : [{ mimeType, data: value["data"] }];
}
