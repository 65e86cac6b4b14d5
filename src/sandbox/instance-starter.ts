import type { Language } from "../../contract/guest.ts";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { boundedLines } from "../platform/bounded-lines.ts";
import { OwlError, reasonWithoutPath } from "../errors/owl-error.ts";
import { type EgressRelay, relayEgress } from "./network/relay/multiplexer.ts";
import type {
  Instance,
  InstanceExit,
  InstanceSpec,
  InstanceUsage,
  Runtime,
  RuntimeTrouble,
  Volume,
} from "./runtimes/runtime.ts";
import type { Logger } from "../telemetry/logger.ts";
import { activeSpan, traced } from "../telemetry/tracing/active-span.ts";
import { type Flavor, FLAVORS } from "./flavors.ts";
import { GuestClient } from "./guest-client.ts";
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
export interface InstancePlan {
  readonly instanceId: string;
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
export type InstanceOptions = Omit<InstancePlan, "instanceId" | "folder" | "language">;

/** The way out to the network for one place. */
export interface EgressAccess {
  readonly socketPath: string;
  /** Leads programs inside to it. */
  readonly env: Readonly<Record<string, string>>;
  /** To upstream servers and back, so far. */
  readonly bytesSent: number;
  readonly bytesReceived: number;
  close(): Promise<void>;
}

export interface InstanceStarterOptions {
  readonly runtime: Runtime;
  /** For templates that have one of their own. */
  readonly runtimesOfTemplates?: ReadonlyMap<string, Runtime>;
  readonly logger: Logger;
  readonly workspacePath: string;
  readonly maxFrameBytes: number;
  readonly templates: Templates;
  /** Folder for workspaces, below the data folder. */
  readonly folder: string;
  readonly openEgress: (instanceId: string, allow: readonly string[]) => Promise<EgressAccess>;
}

/** One running cell with a guest that answered. */
export interface ConnectedInstance {
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
  usage(): Promise<InstanceUsage>;
  close(): Promise<void>;
}

/** Starts places, and removes what is left of them. */
export class InstanceStarter {
  readonly #options: InstanceStarterOptions;
  readonly #running = new Set<RunningInstance>();

  constructor(options: InstanceStarterOptions) {
    this.#options = options;
  }

  /** Ends every running one. Its sandbox starts again on the same files at the next call. */
  endAll(reason: string): void {
    for (const connected of this.#running) connected.client.fail(reason);
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
  diskBytesOf({ template, flavor, volumes }: Pick<InstancePlan, "template" | "flavor" | "volumes">): number {
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
  plan(parts: InstanceOptions): InstancePlan {
    const { language } = this.#options.templates.get(parts.template);
    const instanceId = `owl-${randomBytes(10).toString("hex")}`;
    return { ...parts, language, instanceId, folder: join(this.#options.folder, instanceId) };
  }

  open(plan: InstancePlan, signal: AbortSignal): Promise<ConnectedInstance> {
    if (activeSpan() === undefined) return this.#open(plan, signal);
    const attributes = {
      "owlclaw.sandbox.runtime": this.runtimeNameOf(plan.template),
      "owlclaw.sandbox.template": plan.template,
    };
    return traced({ name: "sandbox start", attributes }, () => this.#open(plan, signal));
  }

  async #open(plan: InstancePlan, signal: AbortSignal): Promise<ConnectedInstance> {
    const { logger, maxFrameBytes, openEgress } = this.#options;
    const { allow } = plan.network;
    const egress = allow.length === 0 ? undefined : await openEgress(plan.instanceId, allow);
    const spec: InstanceSpec = {
      ...this.#specOf(plan),
      env: { ...egress?.env, ...plan.env },
      ...(egress !== undefined && { egressSocket: egress.socketPath }),
    };
    let instance: Instance | undefined;
    try {
      instance = await traced({ name: "runtime start" }, () => this.#runtimeOf(plan.template).start(spec, signal));
      const connected = new RunningInstance({
        instance,
        egress,
        maxFrameBytes,
        logger: logger.child({ sandbox: plan.instanceId }),
      });
      this.#running.add(connected);
      void connected.ended.then(() => this.#running.delete(connected));
      await connected.client.request("guest.hello", {}, { timeoutMs: HELLO_TIMEOUT_MS, signal });
      await instance.checkMounts?.();
      await connected.hasNetwork(HELLO_TIMEOUT_MS);
      return connected;
    } catch (error) {
      await instance?.stop();
      await egress?.close();
      if (error instanceof OwlError) throw error;
      throw new OwlError("internal", `the sandbox could not be started: ${reasonWithoutPath(error)}`, { cause: error });
    }
  }

  /** A place that nobody had before. Nothing stays of one that does not start. */
  async openNew(
    parts: InstanceOptions,
    signal: AbortSignal,
  ): Promise<{ readonly plan: InstancePlan; readonly instance: ConnectedInstance }> {
    const plan = this.plan(parts);
    const instance = await this.#orDiscarded(plan, () => this.open(plan, signal));
    return { plan, instance };
  }

  /** A place whose stream belongs to a program in place of the guest, and that has no network. */
  async openProgram(
    { program, volumes, env }: Pick<InstanceSpec, "volumes" | "env"> & { readonly program: readonly string[] },
    signal: AbortSignal,
  ): Promise<{ readonly instance: Instance; close(): Promise<void> }> {
    const plan = this.plan({ template: "python", flavor: "small", env, volumes, network: { allow: [] } });
    const spec: InstanceSpec = { ...this.#specOf(plan), program };
    const instance = await this.#orDiscarded(plan, () => this.#runtimeOf(plan.template).start(spec, signal));
    return {
      instance,
      close: async () => {
        await instance.stop();
        await this.discard(plan);
      },
    };
  }

  /** Whether everything of it is gone; what is not is tried again. */
  async discard(plan: InstancePlan): Promise<boolean> {
    return await this.#runtimeOf(plan.template).discard(plan.folder);
  }

  /** Workspaces of ended places that could not be removed so far. */
  get left(): number {
    const runtimes = new Set([this.#options.runtime, ...(this.#options.runtimesOfTemplates?.values() ?? [])]);
    return [...runtimes].reduce((sum, runtime) => sum + (runtime.left?.() ?? 0), 0);
  }

  #specOf({ instanceId, template, flavor, folder, volumes, env }: InstancePlan): InstanceSpec {
    const { workspacePath } = this.#options;
    return { id: instanceId, template, resources: FLAVORS[flavor], folder, workspacePath, volumes, env };
  }

  /** What was made for a start that failed is nobody's: no one else knows its plan. */
  async #orDiscarded<T>(plan: InstancePlan, start: () => Promise<T>): Promise<T> {
    try {
      return await start();
    } catch (error) {
      await this.discard(plan).catch((left: unknown) =>
        this.#options.logger.error("a workspace could not be removed", { sandbox: plan.instanceId, error: left }),
      );
      throw error;
    }
  }

  #runtimeOf(template: string): Runtime {
    return this.#options.runtimesOfTemplates?.get(template) ?? this.#options.runtime;
  }
}

interface RunningInstanceOptions {
  readonly instance: Instance;
  readonly egress: EgressAccess | undefined;
  readonly maxFrameBytes: number;
  readonly logger: Logger;
}

class RunningInstance implements ConnectedInstance {
  readonly client: GuestClient;
  readonly ended: Promise<string>;
  readonly containerId: string | undefined;
  readonly #instance: Instance;
  readonly #egress: EgressAccess | undefined;
  readonly #relay: EgressRelay | undefined;
  #isStopping = false;

  constructor({ instance, egress, maxFrameBytes, logger }: RunningInstanceOptions) {
    this.#instance = instance;
    this.containerId = instance.containerId?.slice(0, LISTED_ID_CHARS);
    this.#egress = egress;
    this.client = new GuestClient({ stream: instance.stream, maxFrameBytes, logger });
    void instance.exited.then((exit) => this.client.fail(reasonOf(exit)));
    if (egress !== undefined && instance.egressStream !== undefined) {
      this.#relay = relayEgress(instance.egressStream, egress.socketPath);
      // Its programs would wait for a network that does not come back.
      void this.#relay.ended.then((reason) => this.client.fail(reason));
    }
    this.ended = this.#clearUp();
    logDiagnostics(instance, logger);
  }

  get isOver(): boolean {
    return this.client.isLost;
  }

  get endsAtMs(): number | undefined {
    return this.#instance.endsAtMs;
  }

  get bytesMoved(): number {
    return this.#egress === undefined ? 0 : this.#egress.bytesSent + this.#egress.bytesReceived;
  }

  usage(): Promise<InstanceUsage> {
    return this.#instance.usage();
  }

  /** Programs inside can reach the proxy, if they are to reach one at all. */
  async hasNetwork(timeoutMs: number): Promise<void> {
    if (this.#relay === undefined) return;
    const { ready, ended } = this.#relay;
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
    await this.#instance.stop();
    const exit = await this.#instance.exited;
    await this.#egress?.close();
    const isKnown = !this.#isStopping && (exit.reason === "memory" || exit.reason === "disk");
    return isKnown ? reasonOf(exit) : reason;
  }
}

function reasonOf({ code, signal, reason }: InstanceExit): string {
  if (reason === "memory") return "it used more memory than its flavor allows";
  if (reason === "disk") return "it wrote more than its flavor allows";
  if (reason === "stopped") return "it was stopped";
  return `its first process ended (${signal ?? `exit code ${code ?? "unknown"}`})`;
}

/** The guest's own words, for the log. They are bounded, and nothing depends on them. */
function logDiagnostics({ diagnostics }: Instance, logger: Logger): void {
  diagnostics.on("error", () => undefined);
  boundedLines(diagnostics, {
    maxLineChars: MAX_DIAGNOSTIC_CHARS,
    maxLines: MAX_DIAGNOSTIC_LINES,
    onLine: (text) => logger.debug("guest says", { text }),
  });
}
