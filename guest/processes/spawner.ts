import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { deferred, type Deferred } from "../deferred.ts";
import { isRecord, readLines } from "./line-reader.ts";
import type { Launcher, LaunchOptions, RunningProcess } from "./running-process.ts";
import { Supervisor } from "./supervisor.ts";

/** Number of supervisors that are forked in advance: forking takes longer than starting a shell. */
const SPARE_SUPERVISORS = 2;
const LAUNCH_ATTEMPTS = 3;
const ANNOUNCEMENT_BYTES_MAX = 65_536;

interface SpawnerOptions {
  /** Path of a Python interpreter, possibly a version manager's shim. */
  readonly python: string;
  readonly env: Readonly<Record<string, string>>;
  /** What a program other than Node may allocate; absent: as much as the guest. */
  readonly dataBytes: number | undefined;
  readonly onDiagnostic: (text: string) => void;
}

/** Starts programs through the fork server in `python/spawner.py`, and restarts that when it is killed. */
export class Spawner implements Launcher {
  readonly #options: SpawnerOptions;
  readonly #interpreter = deferred<string>();
  #server: ChildProcess | undefined;
  #spare: Supervisor[] = [];
  #waiting: Deferred<Supervisor>[] = [];
  #ordered = 0;
  #isClosed = false;

  constructor(options: SpawnerOptions) {
    this.#options = options;
    this.#interpreter.promise.catch(() => {});
    this.#startServer();
  }

  /** The interpreter itself, when `python` is a shim; rejects when it cannot run. */
  get interpreter(): Promise<string> {
    return this.#interpreter.promise;
  }

  async launch(options: LaunchOptions): Promise<RunningProcess> {
    for (let attempt = 1; ; attempt += 1) {
      const supervisor = await this.#takeSupervisor();
      try {
        return await supervisor.launch(options);
      } catch (error) {
        supervisor.discard();
        // A supervisor that was killed while it waited is replaced; a program that cannot start is an error.
        if (attempt === LAUNCH_ATTEMPTS || hasReason(error)) throw error;
      }
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const supervisor of this.#spare) supervisor.discard();
    this.#server?.stdin?.destroy();
    this.#server?.stdout?.destroy();
    this.#server?.kill("SIGKILL");
  }

  async #takeSupervisor(): Promise<Supervisor> {
    for (let ready = this.#spare.shift(); ready !== undefined; ready = this.#spare.shift()) {
      if (!ready.isUsable) continue;
      if (this.#spare.length === 0) this.#orderSupervisors();
      return ready;
    }
    const wanted = deferred<Supervisor>();
    this.#waiting.push(wanted);
    this.#orderSupervisors();
    return await wanted.promise;
  }

  #orderSupervisors(): void {
    const missing = SPARE_SUPERVISORS + this.#waiting.length - this.#spare.length - this.#ordered;
    if (missing <= 0 || this.#server === undefined) return;
    this.#ordered += missing;
    this.#server.stdin?.write("s".repeat(missing));
  }

  #startServer(): void {
    const script = join(import.meta.dirname, "spawner.py");
    const { python, dataBytes } = this.#options;
    const limits = dataBytes === undefined ? [] : [String(dataBytes)];
    // No user site and no environment of the caller: this process controls the processes of all calls.
    const server = spawn(python, ["-E", "-s", script, ...limits], {
      cwd: "/",
      env: { PATH: this.#options.env["PATH"], HOME: this.#options.env["HOME"] },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#server = server;
    this.#ordered = 0;
    server.stdin.on("error", () => {});
    server.on("error", (error) => this.#interpreter.reject(error));
    server.on("exit", (code, signal) => this.#onServerExit({ code, signal, server }));
    readLines(server.stdout, {
      onLine: (line) => this.#onAnnouncement(line),
      maxLineBytes: ANNOUNCEMENT_BYTES_MAX,
    });
    this.#orderSupervisors();
  }

  #onServerExit(exit: { code: number | null; signal: string | null; server: ChildProcess }): void {
    if (this.#isClosed || this.#server !== exit.server) return;
    this.#server = undefined;
    this.#options.onDiagnostic(`the process spawner ended (${exit.signal ?? `exit code ${exit.code}`})`);
    // It was killed, and a new one works; or Python cannot run it at all.
    if (exit.signal !== null) return this.#startServer();
    const error = new Error(`${this.#options.python} cannot run the process spawner (exit code ${exit.code})`);
    this.#interpreter.reject(error);
    for (const wanted of this.#waiting.splice(0)) wanted.reject(error);
  }

  #onAnnouncement(line: string): void {
    const announcement: unknown = JSON.parse(line);
    if (!isRecord(announcement)) return;
    const { python, pid, fds, failed } = announcement;
    if (typeof python === "string") this.#interpreter.resolve(python);
    if (typeof failed === "string") {
      this.#ordered -= 1;
      this.#waiting.shift()?.reject(new Error(`cannot start a process: ${failed}`));
    }
    if (typeof pid === "number" && Array.isArray(fds)) this.#onSupervisor(pid, fds.map(Number));
  }

  #onSupervisor(pid: number, fds: readonly number[]): void {
    this.#ordered -= 1;
    let supervisor: Supervisor;
    try {
      supervisor = new Supervisor({ pid, remoteFds: fds, onIdle: (idle) => this.#offer(idle) });
    } catch {
      // It was killed after it was announced: request another.
      return this.#orderSupervisors();
    }
    this.#offer(supervisor);
  }

  #offer(supervisor: Supervisor): void {
    const wanted = this.#waiting.shift();
    if (wanted !== undefined) wanted.resolve(supervisor);
    else if (this.#spare.length < SPARE_SUPERVISORS) this.#spare.unshift(supervisor);
    else supervisor.discard();
  }
}

/** The error of a supervisor that could not start the program, with the system's code. */
function hasReason(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code !== undefined;
}
