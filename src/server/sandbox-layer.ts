import { basename, join } from "node:path";
import type { PlannedVolume } from "../config/plan-volumes.ts";
import type { Config } from "../config/schema.ts";
import { parseVolume, type VolumeSetting } from "../config/volume.ts";
import { toOwlError } from "../errors/owl-error.ts";
import type { Volume } from "../sandbox/runtimes/runtime.ts";
import { memoryLimitMb, DiskCapacity } from "../sandbox/capacity.ts";
import { type Network, InstanceStarter } from "../sandbox/instance-starter.ts";
import { Pool } from "../sandbox/pool.ts";
import { type SandboxRuntime, Sandboxes, type SandboxesOptions } from "../sandbox/sandboxes.ts";
import { TextStore } from "../sandbox/workspace-start.ts";
import type { Templates } from "../sandbox/templates.ts";
import type { SandboxObserver } from "../sandbox/sandbox-observer.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import type { Tracer } from "../telemetry/tracing/tracer.ts";
import type { ToolLimits, ToolServices } from "../tools/sandbox-tool.ts";
import { chooseRuntimes, type FailedRuntimes } from "../sandbox/choose-runtime.ts";
import { type Closers, SandboxRuntimeOpener, type SandboxHealth } from "../sandbox/sandbox-runtime.ts";
import { LazyVolumes } from "../sandbox/opened-volumes.ts";
import { openEgress } from "../sandbox/open-egress.ts";
import type { OpenRuntime } from "../sandbox/open-runtime.ts";
import { sandboxTimes } from "./operations.ts";

/** The tool's own time-out is above that of the code it runs by at least this much. */
const OUTER_MARGIN_SECONDS = 10;
const MIB = 1024 ** 2;
/** What was in mounted workspaces when their sandboxes began, of all sandboxes together. */
const MAX_START_CHARS = 64 * 1024 * 1024;

export interface SandboxLayerOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly openRuntime: OpenRuntime;
  readonly templates: Templates;
  /** `sandbox.volumes`, with what is protected in them. */
  readonly volumes: readonly PlannedVolume[];
  /** Keeps warm sandboxes, and opens what templates need ahead; a command that makes one call has no use for them. */
  readonly withPool: boolean;
  /** Where several servers share the load. */
  readonly serverId?: string | undefined;
  readonly metrics?: Metrics | undefined;
  readonly tracer?: Tracer | undefined;
  /** For people who look on. */
  readonly sandboxObserver?: SandboxObserver | undefined;
}

export interface SandboxLayer {
  readonly services: ToolServices;
  readonly openProgram: InstanceStarter["openProgram"];
  /** Starts the runtime ahead of the first call. Never rejects: what is wrong is logged, and said by every call. */
  start(): Promise<void>;
  health(): SandboxHealth;
  /** What isolates sandboxes of a template; nothing until that is chosen. */
  runtimeOf(template: string): string | undefined;
  /** How many wait in the pool, by template. */
  pooled(): ReadonlyMap<string, number>;
  close(): Promise<void>;
}

/** Everything below the tools, started when it is first needed and stopped in reverse. */
export function createSandboxLayer(options: SandboxLayerOptions): SandboxLayer {
  const { config, logger, sandboxObserver } = options;
  const { sandbox } = config;
  const volumes = sandbox.volumes.map((text) => parseVolume(text, sandbox.workspace));
  const opened = new LazyVolumes(options, (path) =>
    runtime?.starter.endAll(`${basename(path)} was replaced in a mounted folder`),
  );
  const sandboxes = new Sandboxes({
    logger,
    limits: limitsOf(sandbox),
    disk: new DiskCapacity({ dataFolder: sandbox.root, reserveBytes: sandbox.diskReserveMb * MIB }),
    defaults: defaultsOf(sandbox, opened),
    networkOf: (template) => networkOf(sandbox, template),
    sharesVolumes: sandbox.network.shareVolumes,
    autoCreate: sandbox.autoCreate,
    keepWorkspaces: sandbox.keepWorkspaces,
    startTexts: sandboxObserver && startTextsOf(volumes, sandbox.workspace),
    serverId: options.serverId,
    times: options.metrics && sandboxTimes(options.metrics),
    onEnded: (instanceId, why) => sandboxObserver?.ended(instanceId, why),
    runtime: () => opener.open(),
  });
  let runtime: SandboxRuntime | undefined;
  const failedRuntimes: FailedRuntimes = new Map();
  const opener = new SandboxRuntimeOpener(async (closers) => {
    runtime = await openSandboxRuntime(options, { sandboxes, closers, failedRuntimes, volumes: opened.volumes });
    return runtime;
  });
  return {
    services: { sandboxes, templates: options.templates, limits: toolLimits(config), volumes, logger, sandboxObserver },
    openProgram: async (program, signal) => (await opener.open()).starter.openProgram(program, signal),
    start: async () => {
      try {
        await opener.open();
      } catch (thrown) {
        const { message, hint, cause } = toOwlError(thrown);
        logger.error("sandboxes are not available", { reason: message, hint, ...(cause !== undefined && { cause }) });
      }
    },
    health: () => opener.health,
    runtimeOf: (template) => runtime?.starter.runtimeNameOf(template),
    pooled: () => new Map(options.templates.names.map((name) => [name, runtime?.pool.waiting(name) ?? 0])),
    close: async () => {
      opener.stop();
      await sandboxes.close();
      await opener.close();
      opened.close();
    },
  };
}

/** Other workspaces begin empty. */
function startTextsOf(volumes: readonly VolumeSetting[], workspacePath: string): TextStore | undefined {
  const isMounted = volumes.some(({ guestPath }) => guestPath === workspacePath);
  return isMounted ? new TextStore(MAX_START_CHARS) : undefined;
}

function limitsOf(sandbox: Config["sandbox"]): SandboxesOptions["limits"] {
  return {
    maxPerPrincipal: sandbox.maxPerPrincipal,
    maxTotal: sandbox.maxTotal,
    maxTotalMemoryMb: memoryLimitMb(sandbox.maxTotalMemoryMb),
    evictsIdle: sandbox.evictIdle,
  };
}

function defaultsOf(sandbox: Config["sandbox"], opened: LazyVolumes): SandboxesOptions["defaults"] {
  return {
    template: sandbox.template,
    flavor: sandbox.flavor,
    env: sandbox.env,
    get volumes() {
      return opened.volumes;
    },
    idleMs: sandbox.idleTimeoutSeconds * 1000,
    maxAgeMs: sandbox.maxAgeSeconds * 1000,
  };
}

function toolLimits({ sandbox, tools }: Config): ToolLimits {
  return {
    maxResultChars: tools.maxResultChars,
    defaultTimeoutSeconds: sandbox.codeTimeoutSeconds,
    maxTimeoutSeconds: Math.max(tools.timeoutSeconds / 2, tools.timeoutSeconds - OUTER_MARGIN_SECONDS),
    idleTimeoutSeconds: sandbox.idleTimeoutSeconds,
    maxAgeSeconds: sandbox.maxAgeSeconds,
    workspacePath: sandbox.workspace,
    network: networkOf(sandbox, sandbox.template).allow,
    networkOfTemplates: sandbox.network.templates,
  };
}

interface SandboxRuntimeParts {
  readonly sandboxes: Sandboxes;
  readonly closers: Closers;
  readonly failedRuntimes: FailedRuntimes;
  readonly volumes: readonly Volume[];
}

async function openSandboxRuntime(
  { config, logger, openRuntime, templates, withPool, metrics, tracer, sandboxObserver }: SandboxLayerOptions,
  { sandboxes, closers, failedRuntimes, volumes }: SandboxRuntimeParts,
): Promise<SandboxRuntime> {
  const { sandbox, guest } = config;
  const runtimes = await chooseRuntimes({ config, logger, templates }, openRuntime, failedRuntimes);
  closers.push(() => runtimes.close());
  const egress = await openEgress({
    config,
    logger,
    onDecision: ({ sandboxId, isOpen, ...attempt }) => {
      // What is allowed is told of twice: when it opens, and when it has ended.
      if (isOpen || !attempt.allowed) sandboxObserver?.network(sandboxId, attempt);
    },
  });
  closers.push(() => egress.close());
  const starter = new InstanceStarter({
    runtime: runtimes.usual,
    runtimesOfTemplates: runtimes.byTemplate,
    logger,
    workspacePath: sandbox.workspace,
    maxFrameBytes: guest.maxFrameBytes,
    templates,
    folder: join(sandbox.root, "sandboxes"),
    openEgress: (instanceId, allow) => egress.open(instanceId, allow),
  });
  const size = withPool ? sandbox.pool.size : 0;
  const pool = createPool({ config, logger, starter, sandboxes, templates, volumes, metrics, tracer, size });
  closers.push(() => pool.close());
  await sandboxes.capacity.measureDisk(pool);
  pool.refill();
  if (withPool) runtimes.openAhead();
  logger.info("sandboxes are ready", { runtime: starter.runtimeName });
  return { starter, pool };
}

interface PoolParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly starter: InstanceStarter;
  readonly sandboxes: Sandboxes;
  readonly templates: Templates;
  readonly volumes: readonly Volume[];
  readonly metrics: Metrics | undefined;
  readonly tracer: Tracer | undefined;
  readonly size: number;
}

function createPool({ config: { sandbox }, logger, starter, sandboxes, templates, ...rest }: PoolParts): Pool {
  const { volumes, metrics, tracer, size } = rest;
  const { flavor, env } = sandbox;
  const pool: Pool = new Pool({
    size,
    templates: templates.names,
    template: sandbox.template,
    flavor,
    preload: sandbox.pool.preload,
    logger,
    onFilled: (template, durationMs) => {
      metrics?.refillSeconds.observe([template], durationMs / 1000);
      tracer?.record({ name: "pool fill", durationMs, attributes: { "owlclaw.sandbox.template": template } });
    },
    open: (template, signal) =>
      starter.openNew({ template, flavor, env, volumes, network: networkOf(sandbox, template) }, signal),
    maxWaitMs: (template) => starter.maxWaitMsOf(template),
    discard: async ({ plan, instance }) => {
      await instance.close();
      await starter.discard(plan);
    },
    hasCapacity: () => sandboxes.capacity.fits(starter, pool.count + 1, flavor),
  });
  return pool;
}

const networks = new WeakMap<readonly string[], Network>();

function networkOf({ network }: Config["sandbox"], template: string): Network {
  const own = network.templates[template];
  if (own === undefined) return network;
  const known = networks.get(own) ?? { allow: own };
  networks.set(own, known);
  return known;
}
