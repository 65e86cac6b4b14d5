import type { BrowserMethod } from "../../../contract/guest.ts";
import { Socket } from "node:net";
import { Failure } from "../../failure.ts";
import { isRecord } from "../../processes/line-reader.ts";
import { Workspace } from "../../paths.ts";
import { readLines } from "../../processes/line-reader.ts";
import { readDriverSettings } from "./driver-settings.ts";
import { driverMethods } from "./methods.ts";
import { isLate, refuseSickPage } from "./page-health.ts";
import { BrowserSession } from "./session.ts";
import { DeadlineError, until } from "./within.ts";

const REQUESTS_FD = 3;
const ANSWERS_FD = 4;
const LINE_BYTES_MAX = 16 * 1024 * 1024;
/** Playwright ends things by itself at their time, a moment later on a machine that does much else, and says more; this is for what it does not. */
const MARGIN_MS = 2500;
const TOO_LATE = new Failure(
  "timeout",
  "the page did not do it in time",
  "call browser_snapshot to see the page as it is, or raise the time-out",
);

const answers = new Socket({ fd: ANSWERS_FD, readable: false, writable: true });
const settings = readDriverSettings();
const workspace = new Workspace(settings);
const running = new Map<number, AbortController>();
let session: Promise<BrowserSession> | undefined;

/** The guest starts another driver at the next call, and says so. */
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
    // oxlint-disable-next-line typescript/consistent-type-assertions -- the guest has read the parameters of this very method
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

const requests = new Socket({ fd: REQUESTS_FD, readable: true, writable: false });
requests.on("close", () => process.exit(0));
// The guest starts this process for a request that is on its way.
start().catch(() => {});
readLines(requests, { onLine, maxLineBytes: LINE_BYTES_MAX });
// Playwright rejects promises that nobody waits for any more when a page goes away in the middle of a call.
process.on("unhandledRejection", (error) => process.stderr.write(`browser: ${String(error)}\n`));
