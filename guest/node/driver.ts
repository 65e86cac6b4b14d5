/**
 * Runs JavaScript for the guest: one JSON line per request on descriptor 3, one per answer on descriptor 4. Output of the code goes
 * to descriptors 1 and 2.
 */
import vm from "node:vm";
import type { CodeError } from "../../contract/guest.ts";
import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { inspect, types } from "node:util";
import { readLines } from "../processes/line-reader.ts";
import { CellNames } from "./cell-names.ts";
import { describeError, describeSyntaxError, hideDriverFrames } from "./describe-error.ts";
import { OutputStreams } from "./output-streams.ts";
import { toCell, type Cell, META_NAME } from "./transform.ts";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const REQUESTS_FD = 3;
const ANSWERS_FD = 4;
const REQUEST_BYTES_MAX = 64 * 1024 * 1024;

interface Answer {
  readonly status: "ok" | "error";
  readonly value?: { readonly text: string };
  readonly error?: CodeError;
  readonly pictures: readonly [];
}

/** Thrown by `process.exit`: it ends a run and not the driver. */
class ExitCalled extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`the code ended with process.exit(${exitCode})`);
    this.name = "ProcessExit";
    this.exitCode = exitCode;
  }
}

const names = new CellNames(globalThis);
const output = new OutputStreams();
let cellCount = 0;

function main(): void {
  prepareScope();
  catchExit();
  silenceLoaderWarning();
  hideDriverFrames();
  surviveStrayErrors();
  const requests = new Socket({ fd: REQUESTS_FD, readable: true, writable: false });
  requests.on("close", () => process.kill(process.pid, "SIGKILL"));
  readLines(requests, { onLine: (line) => void answer(line), maxLineBytes: REQUEST_BYTES_MAX });
}

async function answer(line: string): Promise<void> {
  const request: unknown = JSON.parse(line);
  const startMs = performance.now();
  const result = await act(request);
  const ms = performance.now() - startMs;
  const id = isObject(request) && "id" in request ? request.id : undefined;
  writeAll(`${JSON.stringify({ id, ms, ...result })}\n`);
}

async function act(request: unknown): Promise<object> {
  if (isObject(request) && "preload" in request) return await preload(request.preload);
  if (isObject(request) && "startOver" in request) return startOver();
  return await run(fieldsOf(request));
}

/** Resets the count after the warm-up runs. */
function startOver(): object {
  cellCount = 0;
  return {};
}

function fieldsOf(request: unknown): { code: string; maxChars: number } {
  const code = isObject(request) && "code" in request ? request.code : "";
  const maxChars = isObject(request) && "maxChars" in request ? request.maxChars : 0;
  return { code: String(code), maxChars: Number(maxChars) };
}

async function run({ code, maxChars }: { code: string; maxChars: number }): Promise<Answer> {
  output.restore();
  cellCount += 1;
  const filename = `<cell ${cellCount}>`;
  let cell: Cell;
  try {
    cell = toCell(code, names);
  } catch (error) {
    const described =
      error instanceof SyntaxError ? describeSyntaxError(error, { code, filename }) : describeError(error);
    return { status: "error", error: described, pictures: [] };
  }
  try {
    names.open(cell.declared);
    const value = await execute(cell, filename);
    if (!cell.hasValue || value === undefined) return { status: "ok", pictures: [] };
    Reflect.set(globalThis, "_", value);
    return { status: "ok", value: { text: cut(inspect(value, { depth: 6 }), maxChars) }, pictures: [] };
  } catch (error) {
    if (error instanceof ExitCalled && error.exitCode === 0) return { status: "ok", pictures: [] };
    return { status: "error", error: bounded(describeError(error), maxChars), pictures: [] };
  } finally {
    names.close();
    process.exitCode = undefined;
  }
}

async function execute(cell: Cell, filename: string): Promise<unknown> {
  const script = new vm.Script(cell.script, {
    filename,
    columnOffset: -cell.prefixLength,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const value: unknown = script.runInThisContext({ displayErrors: false });
  // Programs often end with a call of an async `main()`: this run waits for it.
  return cell.isAsync || (cell.hasValue && types.isPromise(value)) ? await value : value;
}

async function preload(names: unknown): Promise<{ failed: string[] }> {
  const failed: string[] = [];
  for (const name of Array.isArray(names) ? names.map(String) : []) {
    await import(name).catch(() => failed.push(name));
  }
  return { failed };
}

/** `process.exit` must not end the driver, which has the state of all calls. */
function catchExit(): void {
  process.exit = (code) => {
    throw new ExitCalled(Number(code ?? process.exitCode ?? 0));
  };
}

/** Hides the warning about the driver's own module loader. */
function silenceLoaderWarning(): void {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    if (!String(warning).includes("USE_MAIN_CONTEXT_DEFAULT_LOADER"))
      Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
}

/** Unhandled errors in timers and promises are printed; they belong to no running code. */
function surviveStrayErrors(): void {
  const report = (error: unknown): void => {
    if (!(error instanceof ExitCalled)) process.stderr.write(`Uncaught ${describeError(error).traceback}\n`);
  };
  process.on("uncaughtException", report);
  process.on("unhandledRejection", report);
}

function bounded(error: CodeError, maxChars: number): CodeError {
  return { ...error, message: cut(error.message, 4000), traceback: cut(error.traceback, maxChars) };
}

function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const half = Math.floor(maxChars / 2);
  return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters cut …]\n${text.slice(text.length - half)}`;
}

function writeAll(text: string): void {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length;) done += writeSync(ANSWERS_FD, bytes, done);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Makes the global scope look like the scope of a module. */
function prepareScope(): void {
  const folder = process.cwd();
  const filename = join(folder, "cell.js");
  const module = { exports: {} };
  const variables: Record<string, unknown> = {
    require: createRequire(filename),
    module,
    exports: module.exports,
    __dirname: folder,
    __filename: filename,
    [META_NAME]: { url: pathToFileURL(filename).href, dirname: folder, filename },
  };
  for (const [name, value] of Object.entries(variables)) setGlobal(name, value);
  allowRedeclaration();
  process.argv = [process.argv0];
}

/** `const crypto = require("crypto")` must replace the global of that name; some of these are read-only. */
function allowRedeclaration(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!hasGetter(name)) continue;
    const descriptor = Object.getOwnPropertyDescriptor(globalThis, name);
    if (descriptor === undefined || descriptor.set !== undefined || descriptor.configurable !== true) continue;
    const set = (value: unknown): void => setGlobal(name, value);
    Object.defineProperty(globalThis, name, { ...descriptor, set });
  }
}

/** Not by a descriptor: reading it loads lazy globals of Node 22, and `fetch` alone takes 50 ms. */
function hasGetter(name: string): boolean {
  const lookup: unknown = Reflect.get(Object.prototype, "__lookupGetter__");
  return typeof lookup === "function" && Reflect.apply(lookup, globalThis, [name]) !== undefined;
}

function setGlobal(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

main();
