import type { BrowserMethod, GuestFailure, GuestParams, GuestResult } from "../../contract/guest.ts";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { execPath } from "node:process";
import { Interpreter, type Reply } from "../code/interpreter.ts";
import { isDoneWithin } from "../deferred.ts";
import { Failure } from "../failure.ts";
import { findProgram } from "../find-program.ts";
import { isRecord } from "../processes/line-reader.ts";
import type { Launcher } from "../processes/running-process.ts";
import type { Handlers } from "../connection.ts";

/** Time limit for loading the driver and starting Chromium, on a busy machine. */
const START_MS_MAX = 75_000;
/** Added to the time-out: the driver ends late requests itself and checks the page. */
const ANSWER_MARGIN_MS = 20_000;
const CANCEL_MS_MAX = 2500;

/** Debian's start script reads settings that do not exist inside; the program needs none. */
const KNOWN_PATHS = ["/usr/lib/chromium/chromium", "/usr/lib/chromium-browser/chromium-browser"];
const KNOWN_NAMES = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
/** Requests of the dashboard: their answers must not consume events that the agent has not seen. */
const DASHBOARD_METHODS: ReadonlySet<BrowserMethod> = new Set(["browser.picture", "browser.input"]);
const RESTARTED = "the browser had ended and was started again: pages, cookies and refs are gone";
const AGAIN = "open the page again with browser_goto: a new browser starts by itself";
const NO_PICTURE: GuestResult<"browser.picture"> = {
  isRunning: false,
  url: "",
  title: "",
  width: 0,
  height: 0,
  data: "",
};

interface BrowserOptions {
  readonly launcher: Launcher;
  readonly workspacePath: string;
  readonly environment: Readonly<Record<string, string>>;
  /** From the configuration; absent: the guest searches for a browser. */
  readonly executable: string | undefined;
  readonly proxyPort: number | undefined;
}

/** The browser of this sandbox: a driver process that is started at the first call and restarted when it is lost. */
export class SandboxBrowser {
  readonly #options: BrowserOptions;
  #driver: Interpreter | undefined;
  #hasStarted = false;
  /** A lost browser was replaced, and no answer has reported it yet. */
  #isRestartUntold = false;
  /** The last requested page crashed while it opened. */
  #isExhausted = false;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: BrowserOptions) {
    this.#options = options;
  }

  /** Whether the driver has been started. */
  get isRunning(): boolean {
    return this.#hasStarted && this.#driver?.isAlive === true;
  }

  /** Requests run serially: what a page shows depends on the requests before. */
  async ask<M extends BrowserMethod>(method: M, params: GuestParams[M], signal: AbortSignal): Promise<GuestResult<M>> {
    const turn = this.#queue.then(() => this.#ask(method, params, signal));
    this.#queue = turn.catch(() => {});
    return await untilAborted(turn, signal);
  }

  async #ask<M extends BrowserMethod>(method: M, params: GuestParams[M], signal: AbortSignal): Promise<GuestResult<M>> {
    if (signal.aborted) throw cancelled();
    if (method === "browser.goto") await this.#endExhausted();
    const wasLost = this.#hasStarted && this.#driver?.isAlive !== true;
    if (wasLost) this.#isRestartUntold = true;
    const driver = await this.#start();
    const isFirst = wasLost || !this.#hasStarted;
    this.#hasStarted = true;
    const asked = driver.ask({ method, params });
    const cancel = (): void => driver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const reply = await this.#reply(driver, asked, {
        timeoutMs: params.timeoutMs + ANSWER_MARGIN_MS + (isFirst ? START_MS_MAX : 0),
        signal,
      });
      // oxlint-disable-next-line typescript/consistent-type-assertions -- the driver's methods have these results; the host checks each
      return this.#withRestart(reply, DASHBOARD_METHODS.has(method) || signal.aborted) as GuestResult<M>;
    } catch (error) {
      this.#isExhausted = method === "browser.goto" && error instanceof Failure && error.data.kind === "page_crashed";
      throw error;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  /** Pages with hundreds of windows exhaust memory or processes, and every new page crashes: the browser is restarted. */
  async #endExhausted(): Promise<void> {
    if (!this.#isExhausted) return;
    this.#isExhausted = false;
    const driver = this.#driver;
    this.#driver = undefined;
    await driver?.end();
  }

  async #reply(
    driver: Interpreter,
    asked: Promise<Reply>,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<Reply> {
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    const isDone = await isDoneWithin(Promise.race([asked.then(() => {}), aborted]), timeoutMs);
    if (
      isDone &&
      (!signal.aborted ||
        (await isDoneWithin(
          asked.then(() => {}),
          CANCEL_MS_MAX,
        )))
    )
      return await asked;
    this.#driver = undefined;
    await driver.end();
    if (signal.aborted) throw cancelled();
    throw new Failure("browser_hung", "the browser did not answer and was ended", AGAIN);
  }

  /** The first answer after a restart reports it, also when it is a failure. */
  #withRestart(reply: Reply, isUnheard: boolean): unknown {
    if (!this.#isRestartUntold || isUnheard || reply.status === "exited") return readAnswer(reply);
    this.#isRestartUntold = false;
    try {
      const result = readAnswer(reply);
      if (!isRecord(result) || !Array.isArray(result["events"])) return result;
      const events: unknown[] = result["events"];
      return { ...result, events: [RESTARTED, ...events] };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(error.data.kind, `${error.message}; ${RESTARTED}`, error.data.hint);
    }
  }

  async #start(): Promise<Interpreter> {
    if (this.#driver?.isAlive === true) return this.#driver;
    // Chromium's processes may survive a crash of the driver.
    await this.#driver?.end();
    const { launcher, workspacePath, environment, proxyPort } = this.#options;
    const { NODE_OPTIONS: _preload, ...rest } = environment;
    this.#driver = await Interpreter.start({
      launcher,
      argv: [execPath, join(import.meta.dirname, "browser-driver.mjs")],
      cwd: "/",
      env: {
        ...rest,
        OWLCLAW_WORKSPACE: workspacePath,
        OWLCLAW_CHROMIUM: this.#executable(),
        ...(proxyPort !== undefined && { OWLCLAW_PROXY_PORT: String(proxyPort) }),
      },
      isNode: true,
    });
    return this.#driver;
  }

  #executable(): string {
    const { executable, environment } = this.#options;
    const found =
      executable ??
      KNOWN_PATHS.find(isExecutable) ??
      KNOWN_NAMES.map((name) => findProgram(name, environment["PATH"])).find((path) => path !== undefined);
    if (found !== undefined && isExecutable(found)) return found;
    const reason =
      found === undefined ? "there is no Chromium in the sandbox" : `${found} cannot be run in the sandbox`;
    const hint =
      "ask the operator to install it (apt-get install chromium; where sandboxes are containers, in their image) or to name it in sandbox.browser.executable";
    throw new Failure("browser_missing", reason, hint);
  }
}

function readAnswer(reply: Reply): unknown {
  if (reply.status === "exited") {
    throw new Failure("browser_crashed", "the browser ended, perhaps because it used too much memory", AGAIN);
  }
  const { answer } = reply;
  if (!isRecord(answer)) throw new Error("the browser's driver answers nothing");
  if (isFailure(answer["failure"])) {
    const { kind, message, hint } = answer["failure"];
    throw new Failure(kind, message, hint);
  }
  if (answer["fault"] !== undefined) throw new Failure("browser_crashed", faultText(answer["fault"]), AGAIN);
  return answer["result"];
}

function faultText(fault: unknown): string {
  return `the browser could not do it: ${String(fault).split("\n", 1)[0]?.slice(0, 500) ?? ""}`;
}

function isFailure(value: unknown): value is GuestFailure {
  return isRecord(value) && typeof value["message"] === "string" && typeof value["hint"] === "string";
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function cancelled(): Failure {
  return new Failure("cancelled", "the call was cancelled", "repeat it when it is wanted");
}

/** A queued request rejects soon after its cancellation and does not wait for its turn. */
async function untilAborted<T>(turn: Promise<T>, signal: AbortSignal): Promise<T> {
  const left = new Promise<never>((_resolve, reject) => {
    const leave = (): void => void setTimeout(() => reject(cancelled()), CANCEL_MS_MAX + 500);
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  });
  return await Promise.race([turn, left]);
}

/** The guest's methods for the browser. */
export function browserHandlers(browser: SandboxBrowser): Pick<Handlers, BrowserMethod> {
  const ask =
    <M extends BrowserMethod>(method: M) =>
    (params: GuestParams[M], signal: AbortSignal): Promise<GuestResult<M>> =>
      browser.ask(method, params, signal);
  return {
    "browser.goto": ask("browser.goto"),
    "browser.click": ask("browser.click"),
    "browser.type": ask("browser.type"),
    "browser.snapshot": ask("browser.snapshot"),
    "browser.screenshot": ask("browser.screenshot"),
    "browser.history": ask("browser.history"),
    "browser.press": ask("browser.press"),
    "browser.select": ask("browser.select"),
    "browser.hover": ask("browser.hover"),
    "browser.scroll": ask("browser.scroll"),
    "browser.wait": ask("browser.wait"),
    "browser.evaluate": ask("browser.evaluate"),
    "browser.log": ask("browser.log"),
    "browser.tabs": ask("browser.tabs"),
    "browser.pdf": ask("browser.pdf"),
    "browser.upload": ask("browser.upload"),
    "browser.picture": async (params, signal) =>
      browser.isRunning ? ask("browser.picture")(params, signal) : NO_PICTURE,
    "browser.input": async (params, signal) => {
      if (browser.isRunning) return ask("browser.input")(params, signal);
      throw new Failure("browser_missing", "no browser runs in this sandbox", "open a page first");
    },
  };
}
