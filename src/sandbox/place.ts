import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { boundedLines } from "../platform/bounded-lines.ts";
import { OwlError, reasonWithoutPath } from "../errors/owl-error.ts";
import { type CarriedEgress, carryEgress } from "./network/relay/carry-egress.ts";
import type { Cell, CellExit, CellSpec, CellUsage, Runtime, RuntimeTrouble, Volume } from "./runtimes/runtime.ts";
import type { Logger } from "../telemetry/logger.ts";
import { activeSpan, traced } from "../telemetry/tracing/active-span.ts";
import { type Flavor, FLAVORS } from "./flavors.ts";
import { GuestClient } from "./guest-client.ts";
import type { Language } from "./guest-methods.ts";
import type { Templates } from "./templates.ts";

/** A guest that takes longer than this to say hello will not come any more. */
/** For machines in software, where Node alone takes ten seconds. */
const HELLO_TIMEOUT_MS = 60_000;
/** As engines list containers. */
const LISTED_ID_CHARS = 12;
const MAX_DIAGNOSTIC_LINES = 200;
const MAX_DIAGNOSTIC_CHARS = 500;

/** Hosts that can be reached; none: no network at all. */
export interface Network {
  readonly allow: readonly string[];
}

/** What a sandbox is made of; enough to start it again. */
export interface PlacePlan {
  readonly cellId: string;
  readonly folder: string;
  readonly template: string;
  /** What code is in when the call does not say. */
  readonly language: Language;
  readonly flavor: Flavor;
  readonly env: Readonly<Record<string, string>>;
  readonly volumes: readonly Volume[];
  readonly network: Network;
}

/** What somebody must say to have a place planned. */
export type PlaceParts = Omit<PlacePlan, "cellId" | "folder" | "language">;

/** The way out to the network for one place. */
export interface Door {
  readonly socketPath: string;
  /** Leads programs inside to it. */
  readonly env: Readonly<Record<string, string>>;
  /** To upstream servers and back, so far. */
  readonly bytesSent: number;
  readonly bytesReceived: number;
  close(): Promise<void>;
}

export interface PlacesOptions {
  readonly runtime: Runtime;
  /** For templates that have one of their own. */
  readonly runtimesOfTemplates?: ReadonlyMap<string, Runtime>;
  readonly logger: Logger;
  readonly workspacePath: string;
  readonly maxFrameBytes: number;
  readonly templates: Templates;
  /** Folder for workspaces, below the data folder. */
  readonly folder: string;
  readonly openDoor: (cellId: string, allow: readonly string[]) => Promise<Door>;
}

/** One running cell with a guest that answered. */
export interface Place {
  readonly client: GuestClient;
  /** Resolves with the reason when it is over, whoever ended it; by then everything of it is stopped. */
  readonly ended: Promise<string>;
  readonly isOver: boolean;
  readonly containerId?: string | undefined;
  /** When it ends by itself, whoever is in it; absent: never. */
  readonly endsAtMs?: number | undefined;
  /** What went over its network so far, both ways. */
  readonly bytesMoved: number;
  /** What it uses of the machine. */
  usage(): Promise<CellUsage>;
  close(): Promise<void>;
}

/** Starts places, and removes what is left of them. */
export class Places {
  readonly #options: PlacesOptions;
  readonly #running = new Set<RunningPlace>();

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  /** Ends every running one. Its sandbox starts again on the same files at the next call. */
  endAll(reason: string): void {
    for (const place of this.#running) place.client.fail(reason);
  }

  get runtimeName(): string {
    return this.#options.runtime.name;
  }

  /** What isolates sandboxes of a template. */
  runtimeNameOf(template: string): string {
    return this.#runtimeOf(template).name;
  }

  /** How long one of a template may wait for somebody; nothing: for ever. */
  maxWaitMsOf(template: string): number | undefined {
    return this.#runtimeOf(template).maxWaitMs;
  }

  /** What the workspace may take of the data folder's disk: nothing where it is a volume, or lies with an engine. */
  diskBytesOf({ template, flavor, volumes }: Pick<PlacePlan, "template" | "flavor" | "volumes">): number {
    const isElsewhere =
      this.runtimeNameOf(template) === "docker" ||
      volumes.some(({ guestPath }) => guestPath === this.#options.workspacePath);
    return isElsewhere ? 0 : FLAVORS[flavor].diskBytes;
  }

  /** What keeps new ones from starting at the moment: all of them, or those of a template. */
  get trouble(): RuntimeTrouble | undefined {
    const { runtime, runtimesOfTemplates = new Map<string, Runtime>() } = this.#options;
    const usual = runtime.trouble?.();
    if (usual !== undefined && (usual.template === undefined || usual.isCommon === true)) return { error: usual.error };
    for (const [template, other] of runtimesOfTemplates) {
      const trouble = other.trouble?.();
      // Several templates may share a runtime, and not what is wrong.
      if (trouble !== undefined) return { error: trouble.error, template: trouble.template ?? template };
    }
    return usual;
  }

  /** A cell's name shows in lists of processes and groups, so it is not the id that opens the sandbox. */
  plan(parts: PlaceParts): PlacePlan {
    const { language } = this.#options.templates.get(parts.template);
    const cellId = `owl-${randomBytes(10).toString("hex")}`;
    return { ...parts, language, cellId, folder: join(this.#options.folder, cellId) };
  }

  open(plan: PlacePlan, signal: AbortSignal): Promise<Place> {
    if (activeSpan() === undefined) return this.#open(plan, signal);
    const attributes = {
      "owlclaw.sandbox.runtime": this.runtimeNameOf(plan.template),
      "owlclaw.sandbox.template": plan.template,
    };
    return traced({ name: "sandbox start", attributes }, () => this.#open(plan, signal));
  }

  async #open(plan: PlacePlan, signal: AbortSignal): Promise<Place> {
    const { logger, maxFrameBytes, openDoor } = this.#options;
    const { allow } = plan.network;
    const door = allow.length === 0 ? undefined : await openDoor(plan.cellId, allow);
    const spec: CellSpec = {
      ...this.#specOf(plan),
      env: { ...door?.env, ...plan.env },
      ...(door !== undefined && { egressSocket: door.socketPath }),
    };
    let cell: Cell | undefined;
    try {
      cell = await traced({ name: "runtime start" }, () => this.#runtimeOf(plan.template).start(spec, signal));
      const place = new RunningPlace({ cell, door, maxFrameBytes, logger: logger.child({ sandbox: plan.cellId }) });
      this.#running.add(place);
      void place.ended.then(() => this.#running.delete(place));
      await place.client.request("guest.hello", {}, { timeoutMs: HELLO_TIMEOUT_MS, signal });
      await cell.checkMounts?.();
      await place.hasNetwork(HELLO_TIMEOUT_MS);
      return place;
    } catch (error) {
      await cell?.stop();
      await door?.close();
      if (error instanceof OwlError) throw error;
      throw new OwlError("internal", `the sandbox could not be started: ${reasonWithoutPath(error)}`, { cause: error });
    }
  }

  /** A place that nobody had before. Nothing stays of one that does not start. */
  async openNew(parts: PlaceParts, signal: AbortSignal): Promise<{ readonly plan: PlacePlan; readonly place: Place }> {
    const plan = this.plan(parts);
    const place = await this.#orDiscarded(plan, () => this.open(plan, signal));
    return { plan, place };
  }

  /** A place whose stream belongs to a program in place of the guest, and that has no network. */
  async openProgram(
    { program, volumes, env }: Pick<CellSpec, "volumes" | "env"> & { readonly program: readonly string[] },
    signal: AbortSignal,
  ): Promise<{ readonly cell: Cell; close(): Promise<void> }> {
    const plan = this.plan({ template: "python", flavor: "small", env, volumes, network: { allow: [] } });
    const spec: CellSpec = { ...this.#specOf(plan), program };
    const cell = await this.#orDiscarded(plan, () => this.#runtimeOf(plan.template).start(spec, signal));
    return {
      cell,
      close: async () => {
        await cell.stop();
        await this.discard(plan);
      },
    };
  }

  /** Whether everything of it is gone; what is not is tried again. */
  async discard(plan: PlacePlan): Promise<boolean> {
    return await this.#runtimeOf(plan.template).discard(plan.folder);
  }

  /** Workspaces of ended places that could not be removed so far. */
  get left(): number {
    const runtimes = new Set([this.#options.runtime, ...(this.#options.runtimesOfTemplates?.values() ?? [])]);
    return [...runtimes].reduce((sum, runtime) => sum + (runtime.left?.() ?? 0), 0);
  }

  #specOf({ cellId, template, flavor, folder, volumes, env }: PlacePlan): CellSpec {
    const { workspacePath } = this.#options;
    return { id: cellId, template, resources: FLAVORS[flavor], folder, workspacePath, volumes, env };
  }

  /** What was made for a start that failed is nobody's: no one else knows its plan. */
  async #orDiscarded<T>(plan: PlacePlan, start: () => Promise<T>): Promise<T> {
    try {
      return await start();
    } catch (error) {
      await this.discard(plan).catch((left: unknown) =>
        this.#options.logger.error("a workspace could not be removed", { sandbox: plan.cellId, error: left }),
      );
      throw error;
    }
  }

  #runtimeOf(template: string): Runtime {
    return this.#options.runtimesOfTemplates?.get(template) ?? this.#options.runtime;
  }
}

interface RunningPlaceOptions {
  readonly cell: Cell;
  readonly door: Door | undefined;
  readonly maxFrameBytes: number;
  readonly logger: Logger;
}

class RunningPlace implements Place {
  readonly client: GuestClient;
  readonly ended: Promise<string>;
  readonly containerId: string | undefined;
  readonly #cell: Cell;
  readonly #door: Door | undefined;
  readonly #egress: CarriedEgress | undefined;
  #isStopping = false;

  constructor({ cell, door, maxFrameBytes, logger }: RunningPlaceOptions) {
    this.#cell = cell;
    this.containerId = cell.containerId?.slice(0, LISTED_ID_CHARS);
    this.#door = door;
    this.client = new GuestClient({ stream: cell.stream, maxFrameBytes, logger });
    void cell.exited.then((exit) => this.client.fail(reasonOf(exit)));
    if (door !== undefined && cell.egressStream !== undefined) {
      this.#egress = carryEgress(cell.egressStream, door.socketPath);
      // Its programs would wait for a network that does not come back.
      void this.#egress.ended.then((reason) => this.client.fail(reason));
    }
    this.ended = this.#clearUp();
    logDiagnostics(cell, logger);
  }

  get isOver(): boolean {
    return this.client.isLost;
  }

  get endsAtMs(): number | undefined {
    return this.#cell.endsAtMs;
  }

  get bytesMoved(): number {
    return this.#door === undefined ? 0 : this.#door.bytesSent + this.#door.bytesReceived;
  }

  usage(): Promise<CellUsage> {
    return this.#cell.usage();
  }

  /** Programs inside can reach the proxy, if they are to reach one at all. */
  async hasNetwork(timeoutMs: number): Promise<void> {
    if (this.#egress === undefined) return;
    const { ready, ended } = this.#egress;
    const late = delay(timeoutMs, "its relay does not answer", { ref: false });
    const problem = await Promise.race([ready, ended, late]);
    if (problem !== undefined) throw new OwlError("internal", `the sandbox has no network: ${problem}`);
  }

  async close(): Promise<void> {
    this.#isStopping = true;
    this.client.fail("it was stopped");
    await this.ended;
  }

  /** Stops first and asks why afterwards: whoever has taken the guest over gets no time. */
  async #clearUp(): Promise<string> {
    const reason = await this.client.lost;
    await this.#cell.stop();
    const exit = await this.#cell.exited;
    await this.#door?.close();
    const isKnown = !this.#isStopping && (exit.reason === "memory" || exit.reason === "disk");
    return isKnown ? reasonOf(exit) : reason;
  }
}

function reasonOf({ code, signal, reason }: CellExit): string {
  if (reason === "memory") return "it used more memory than its flavor allows";
  if (reason === "disk") return "it wrote more than its flavor allows";
  if (reason === "stopped") return "it was stopped";
  return `its first process ended (${signal ?? `exit code ${code ?? "unknown"}`})`;
}

/** The guest's own words, for the log. They are bounded, and nothing depends on them. */
function logDiagnostics({ diagnostics }: Cell, logger: Logger): void {
  diagnostics.on("error", () => undefined);
  boundedLines(diagnostics, {
    maxLineChars: MAX_DIAGNOSTIC_CHARS,
    maxLines: MAX_DIAGNOSTIC_LINES,
    onLine: (text) => logger.debug("guest says", { text }),
  });
}
