import type { BrowserMethod, GuestParams, GuestResult } from "../../../contract/guest.ts";
import { Socket } from "node:net";
import { Failure } from "../../failure.ts";
import { isRecord, readLines } from "../../processes/line-reader.ts";
import { Workspace } from "../../paths.ts";
import { DeadlineError, until, isLate, refuseSickPage } from "./within.ts";
import { BrowserSession } from "./session.ts";
import { click, hover, press, select, type, upload } from "./act.ts";
import { goThroughHistory, goto } from "./goto.ts";
import { evaluate, readLog, scroll, useTabs, waitForText } from "./look.ts";
import { savePdf, takeScreenshot } from "./screenshot.ts";
import { showPage, takeInput } from "./show.ts";
import { takeSnapshot } from "./snapshot.ts";
import { env } from "node:process";
import { realpathSync } from "node:fs";
import type { ChromiumOptions } from "./chromium.ts";

const REQUESTS_FD = 3;
const ANSWERS_FD = 4;
const LINE_BYTES_MAX = 16 * 1024 * 1024;
/** Playwright's own time-outs have better messages and may be late on a busy machine; this is for requests without one. */
const MARGIN_MS = 2500;
const TOO_LATE = new Failure(
  "timeout",
  "the page did not do it in time",
  "call browser_snapshot to see the page as it is, or raise the time-out",
);

type DriverMethods = {
  readonly [M in BrowserMethod]: (
    session: BrowserSession,
    params: GuestParams[M],
    signal: AbortSignal,
  ) => Promise<GuestResult<M>>;
};

const driverMethods: DriverMethods = {
  "browser.goto": goto,
  "browser.click": click,
  "browser.type": type,
  "browser.snapshot": takeSnapshot,
  "browser.screenshot": takeScreenshot,
  "browser.history": goThroughHistory,
  "browser.press": press,
  "browser.select": select,
  "browser.hover": hover,
  "browser.scroll": scroll,
  "browser.wait": waitForText,
  "browser.evaluate": evaluate,
  "browser.log": readLog,
  "browser.tabs": useTabs,
  "browser.pdf": savePdf,
  "browser.upload": upload,
  "browser.picture": showPage,
  "browser.input": takeInput,
};

const answers = new Socket({ fd: ANSWERS_FD, readable: false, writable: true });
const settings = readDriverSettings();
const workspace = new Workspace(settings);
const running = new Map<number, AbortController>();
let session: Promise<BrowserSession> | undefined;

/** The guest starts another driver at the next call and reports the restart. */
function onGone(): void {
  process.exit(1);
}

function start(): Promise<BrowserSession> {
  session ??= BrowserSession.start({ chromium: settings, workspace, onGone });
  session.catch(() => (session = undefined));
  return session;
}

async function answer(request: Record<string, unknown>): Promise<object> {
  const { id, method, params } = request;
  if (typeof id !== "number" || !isMethod(method)) throw new Error("not a request");
  const browser = await start();
  const controller = new AbortController();
  running.set(id, controller);
  const timeoutMs = isRecord(params) && typeof params["timeoutMs"] === "number" ? params["timeoutMs"] : 0;
  const late = setTimeout(() => controller.abort(new DeadlineError(timeoutMs)), timeoutMs + MARGIN_MS);
  try {
    // oxlint-disable-next-line typescript/consistent-type-assertions -- the server sends the parameters of this very method
    const doing: Promise<object> = driverMethods[method](browser, params as never, controller.signal);
    return await until(doing, controller.signal);
  } catch (error) {
    await refuseSickPage(browser, error);
    throw isLate(error) ? TOO_LATE : error;
  } finally {
    clearTimeout(late);
    running.delete(id);
  }
}

function isMethod(name: unknown): name is BrowserMethod {
  return typeof name === "string" && Object.hasOwn(driverMethods, name);
}

function onLine(line: string): void {
  const request: unknown = JSON.parse(line);
  if (!isRecord(request)) return;
  const { id, cancel } = request;
  if (typeof cancel === "number") {
    running.get(cancel)?.abort(new Failure("cancelled", "the call was cancelled", "repeat it when it is wanted"));
    return;
  }
  void answer(request).then(
    (result) => say({ id, result }),
    (error: unknown) => say({ id, ...toFault(error) }),
  );
}

function toFault(error: unknown): object {
  if (error instanceof Failure) return { failure: error.data };
  return { fault: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

function say(message: object): void {
  answers.write(`${JSON.stringify(message)}\n`);
}

/** The settings in the driver's environment variables. */
interface DriverSettings extends ChromiumOptions {
  readonly workspacePath: string;
  readonly workspaceRealPath: string;
}

function readDriverSettings(): DriverSettings {
  const workspacePath = env["OWLCLAW_WORKSPACE"] ?? process.cwd();
  const port = env["OWLCLAW_PROXY_PORT"];
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !name.startsWith("OWLCLAW_")) environment[name] = value;
  }
  return {
    workspacePath,
    workspaceRealPath: realpathSync(workspacePath),
    executable: env["OWLCLAW_CHROMIUM"] ?? "",
    proxyPort: port === undefined ? undefined : Number(port),
    environment,
  };
}

const requests = new Socket({ fd: REQUESTS_FD, readable: true, writable: false });
requests.on("close", () => process.exit(0));
// The guest starts this process for a request, so the browser is started before the request arrives.
start().catch(() => {});
readLines(requests, { onLine, maxLineBytes: LINE_BYTES_MAX });
// Playwright leaves rejected promises unhandled when a page is closed during a call.
process.on("unhandledRejection", (error) => process.stderr.write(`browser: ${String(error)}\n`));
