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
  RuntimeProblem,
  Volume,
} from "./runtimes/runtime.ts";
import type { Logger } from "../telemetry/logger.ts";
import { activeSpan, traced } from "../telemetry/tracing/active-span.ts";
import { type Flavor, FLAVORS } from "./flavors.ts";
import { GuestClient } from "./guest-client.ts";
import type { EgressListener } from "./network/egress-listener.ts";
import type { Templates } from "./templates.ts";

/** Long, for emulated machines, where Node alone takes ten seconds to start. */
const HELLO_TIMEOUT_MS = 60_000;
/** The length of container ids in lists of engines. */
const LISTED_ID_CHARS = 12;
const MAX_DIAGNOSTIC_LINES = 200;
const MAX_DIAGNOSTIC_CHARS = 500;

/** The hosts that can be reached; none: no network. */
export interface Network {
  readonly allow: readonly string[];
}

/** Everything that is needed to start an instance, also again after it has ended. */
export interface InstancePlan {
  readonly instanceId: string;
  readonly folder: string;
  readonly template: string;
  /** The language of code when the call names none. */
  readonly language: Language;
  readonly flavor: Flavor;
  readonly env: Readonly<Record<string, string>>;
  readonly volumes: readonly Volume[];
  readonly network: Network;
}

/** What an `InstancePlan` is made from. */
export type InstanceOptions = Omit<InstancePlan, "instanceId" | "folder" | "language">;

/** Access to the egress proxy for one instance. */
export interface EgressAccess {
  readonly listener: Pick<EgressListener, "socketPath" | "bytesSent" | "bytesReceived" | "close">;
  /** Makes programs inside use the proxy. */
  readonly env: Readonly<Record<string, string>>;
}

export interface InstanceStarterOptions {
  readonly runtime: Runtime;
  /** Runtimes of templates that do not use the default one. */
  readonly runtimesOfTemplates?: ReadonlyMap<string, Runtime>;
  readonly logger: Logger;
  readonly workspacePath: string;
  readonly maxFrameBytes: number;
  readonly templates: Templates;
  /** Folder below the data folder for workspaces. */
  readonly folder: string;
  readonly openEgress: (instanceId: string, allow: readonly string[]) => Promise<EgressAccess>;
}

/** A running instance whose guest has answered. */
export interface ConnectedInstance {
  readonly client: GuestClient;
  /** Resolves with the reason when it has ended and everything of it is stopped. */
  readonly ended: Promise<string>;
  readonly isOver: boolean;
  readonly containerId?: string | undefined;
  /** When the runtime ends it; absent: never. */
  readonly endsAtMs?: number | undefined;
  /** Network traffic so far, both ways. */
  readonly bytesMoved: number;
  /** CPU, memory and processes. */
  usage(): Promise<InstanceUsage>;
  close(): Promise<void>;
}

/** Starts instances, and removes their workspaces. */
export class InstanceStarter {
  readonly #options: InstanceStarterOptions;
  readonly #running = new Set<RunningInstance>();

  constructor(options: InstanceStarterOptions) {
    this.#options = options;
  }

  /** Ends every running instance. Its sandbox starts another on the same files at the next call. */
  endAll(reason: string): void {
    for (const connected of this.#running) connected.client.fail(reason);
  }

  get runtimeName(): string {
    return this.#options.runtime.name;
  }

  /** The runtime of a template. */
  runtimeNameOf(template: string): string {
    return this.#runtimeOf(template).name;
  }

  /** How long an instance of a template may wait in the warm pool; `undefined`: without limit. */
  maxWaitMsOf(template: string): number | undefined {
    return this.#runtimeOf(template).maxWaitMs;
  }

  /** The disk quota of the workspace on the data folder's disk; 0 when it is a volume or stored by an engine. */
  diskBytesOf({ template, flavor, volumes }: Pick<InstancePlan, "template" | "flavor" | "volumes">): number {
    const isElsewhere =
      this.runtimeNameOf(template) === "docker" ||
      volumes.some(({ guestPath }) => guestPath === this.#options.workspacePath);
    return isElsewhere ? 0 : FLAVORS[flavor].diskBytes;
  }

  /** Why no instance, or none of a template, can be started at the moment. */
  get problem(): RuntimeProblem | undefined {
    const { runtime, runtimesOfTemplates = new Map<string, Runtime>() } = this.#options;
    const usual = runtime.problem?.();
    if (usual !== undefined && (usual.template === undefined || usual.isCommon === true)) return { error: usual.error };
    for (const [template, other] of runtimesOfTemplates) {
      const problem = other.problem?.();
      // Templates that share a runtime may have different images.
      if (problem !== undefined) return { error: problem.error, template: problem.template ?? template };
    }
    return usual;
  }

  /** The instance id is visible in process lists, so it differs from the session id, which gives access. */
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
      ...(egress !== undefined && { egressSocket: egress.listener.socketPath }),
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
      await connected.waitForNetwork(HELLO_TIMEOUT_MS);
      return connected;
    } catch (error) {
      await instance?.stop();
      await egress?.listener.close();
      if (error instanceof OwlError) throw error;
      throw new OwlError("internal", `the sandbox could not be started: ${reasonWithoutPath(error)}`, { cause: error });
    }
  }

  /** Starts an instance with a new plan. When the start fails, everything of it is removed. */
  async openNew(
    parts: InstanceOptions,
    signal: AbortSignal,
  ): Promise<{ readonly plan: InstancePlan; readonly instance: ConnectedInstance }> {
    const plan = this.plan(parts);
    const instance = await this.#orDiscarded(plan, () => this.open(plan, signal));
    return { plan, instance };
  }

  /** Starts a program instead of the guest, without network. */
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

  /** Removes the workspace. Returns whether it is gone; a failed removal is retried. */
  async discard(plan: InstancePlan): Promise<boolean> {
    return await this.#runtimeOf(plan.template).discard(plan.folder);
  }

  /** Number of workspaces whose removal has failed. */
  get left(): number {
    const runtimes = new Set([this.#options.runtime, ...(this.#options.runtimesOfTemplates?.values() ?? [])]);
    return [...runtimes].reduce((sum, runtime) => sum + (runtime.left?.() ?? 0), 0);
  }

  #specOf({ instanceId, template, flavor, folder, volumes, env }: InstancePlan): InstanceSpec {
    const { workspacePath } = this.#options;
    return { id: instanceId, template, resources: FLAVORS[flavor], folder, workspacePath, volumes, env };
  }

  /** Removes the workspace when the start fails: no other code knows its plan. */
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
      this.#relay = relayEgress(instance.egressStream, egress.listener.socketPath);
      // The network does not come back without a new instance.
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
    const { bytesSent = 0, bytesReceived = 0 } = this.#egress?.listener ?? {};
    return bytesSent + bytesReceived;
  }

  usage(): Promise<InstanceUsage> {
    return this.#instance.usage();
  }

  /** Waits until programs inside can reach the proxy. */
  async waitForNetwork(timeoutMs: number): Promise<void> {
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

  /** Stops the instance before it reads the reason: a guest that was taken over gets no time. */
  async #clearUp(): Promise<string> {
    const reason = await this.client.lost;
    await this.#instance.stop();
    const exit = await this.#instance.exited;
    await this.#egress?.listener.close();
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

/** Logs the guest's stderr, bounded. */
function logDiagnostics({ diagnostics }: Instance, logger: Logger): void {
  diagnostics.on("error", () => undefined);
  boundedLines(diagnostics, {
    maxLineChars: MAX_DIAGNOSTIC_CHARS,
    maxLines: MAX_DIAGNOSTIC_LINES,
    onLine: (text) => logger.debug("guest says", { text }),
  });
}
