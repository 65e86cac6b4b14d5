import { Writable } from "node:stream";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { isLoopbackHost } from "../config/value-rules.ts";
import type { Logger, LoggerLevel } from "../telemetry/logger.ts";
import type { HttpListener } from "../transport/http/http-listener.ts";
import type { HttpTransport } from "../transport/http/http-transport.ts";
import type { PeerUsers } from "../transport/http/peer-users.ts";
import type { Assembly, AssembleOptions } from "./assemble.ts";
import { EarlyWorker } from "../handlers/workers/launch-process.ts";
import type { DashboardAddress } from "../operator/operator-sessions.ts";
import type { OpenRuntime } from "../sandbox/open-runtime.ts";
import type { SandboxHealth } from "../sandbox/sandbox-runtime.ts";
import { CloseStack } from "../platform/close-stack.ts";
import type { ApiRoute } from "../operator/api.ts";
import type { Dashboard, DashboardParts } from "./open-dashboard.ts";
import type { OperationsOptions } from "./operations.ts";
import { Reloader } from "./reloader.ts";
import { hearReloadSignal, onParentDeath, onStopSignal, onStrayErrors, type ReloadSignal } from "./signals.ts";

/**
 * The official client closes stdin, waits for 2 s, and then sends SIGTERM: running calls have half of that, and what is
 * cancelled then is recorded in the rest.
 */
const STDIO_DEADLINE_MS = 1000;

export interface StartOptions {
  readonly loaded: LoadedConfig;
  readonly logger: Logger;
  /** What isolates sandboxes in place of the configured runtime; for tests. */
  readonly openRuntime?: OpenRuntime;
  /** Changes the level of the log. */
  readonly setLevel?: (level: LoggerLevel) => void;
}

export interface RunningServer {
  readonly url?: string;
  /** Whether sandboxes can run; absent when they are switched off. */
  readonly sandboxes?: SandboxHealth | undefined;
  /** Where operators look, with a link that opens it once where it takes one. */
  readonly dashboard?: (() => DashboardAddress | undefined) | undefined;
  /** Resolves with the exit code when everything has stopped. */
  readonly closed: Promise<number>;
  close(reason: string): Promise<void>;
}

/** Opens everything that calls need, then serves. Stops in reverse on a signal, at the end of stdin, or on `close`. */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  return CloseStack.opening(async (opened) => {
    const reloadSignal = hearReloadSignal();
    opened.defer(() => reloadSignal.off());
    const { loaded } = options;
    return loaded.config.transport === "stdio"
      ? startStdio(opened, options, reloadSignal)
      : startHttp(opened, options, reloadSignal);
  });
}

/** The greater part of the code is loaded only after the first process has been started. */
async function assembled(
  opened: CloseStack,
  { loaded, logger, openRuntime }: StartOptions,
  earlyWorker: EarlyWorker,
  certificate?: AssembleOptions["certificate"],
): Promise<Assembly> {
  try {
    const { config, volumes } = loaded;
    const { assemble } = await import("./assemble.ts");
    const assembly = await assemble({ config, volumes, logger, openRuntime, loaded, earlyWorker, certificate });
    return opened.add(assembly);
  } finally {
    earlyWorker.dismiss();
  }
}

async function startHttp(
  opened: CloseStack,
  options: StartOptions,
  reloadSignal: ReloadSignal,
): Promise<RunningServer> {
  const { loaded, logger } = options;
  const { config } = loaded;
  const earlyWorker = new EarlyWorker(config);
  opened.defer(() => earlyWorker.dismiss());
  const { openHttpListener } = await import("../transport/http/http-listener.ts");
  const listener = opened.add(await openHttpListener(config.http, logger));
  const assembly = await assembled(opened, options, earlyWorker, () => listener.certificate);
  await assembly.start();
  const reloader = opened.add(reloaderOf(options, assembly, () => listener.refresh()));
  const { transport, dashboard } = await openTransport(opened, options, { listener, assembly, reloader });
  // Before anything is answered: a stop signal must have its handler then.
  const running = lifecycle(logger, () => opened.close());
  try {
    const origin = transport.serve();
    if (config.http.socket === "") dashboard?.listensAt(origin);
    await assembly.cluster?.announce(origin);
    const url = `${origin}/mcp`;
    logger.info("listening", { url, ...(config.http.socket !== "" && { socket: config.http.socket }) });
    return served(assembly, { running, reloader, reloadSignal, dashboard, url });
  } catch (error) {
    running.abandon();
    throw error;
  }
}

interface HttpParts {
  readonly listener: HttpListener;
  readonly assembly: Assembly;
  readonly reloader: Reloader;
}

async function openTransport(
  opened: CloseStack,
  options: StartOptions,
  { listener, assembly, reloader }: HttpParts,
): Promise<{ readonly transport: HttpTransport; readonly dashboard: Dashboard | undefined }> {
  const { logger, loaded } = options;
  const { config } = loaded;
  const [{ createAuthenticator }, transports] = await Promise.all([
    import("../auth/authenticator.ts"),
    import("../transport/http/http-transport.ts"),
  ]);
  const { mcp, files, operator, cluster, groupsClaim, health, metrics, operators } = assembly;
  const authenticator = opened.add(await createAuthenticator({ auth: config.auth, logger, groupsClaim }));
  const dashboard = config.dashboard.enabled
    ? (await import("./open-dashboard.ts")).dashboardOverHttp(
        dashboardParts(options, assembly, reloader),
        authenticator,
      )
    : undefined;
  await (await import("./operations.ts")).openOperations(opened, operationsOf(options, assembly, dashboard));
  const transport = new transports.HttpTransport({
    mcp,
    config,
    listener,
    authenticator,
    peers: await peersOf(config, logger),
    files,
    operator,
    forwards: cluster?.receiver,
    sessionOwners: cluster?.sessions,
    health,
    metrics,
    dashboard: dashboard?.endpoint,
    ...operators,
  });
  opened.defer(() => transport.drain(config.shutdown.deadlineSeconds * 1000));
  if (dashboard !== undefined) opened.add(dashboard);
  opened.defer(() => cluster?.leave());
  return { transport, dashboard };
}

/** Whose connections are served with auth off. Says what that means. */
async function peersOf({ auth, http }: Config, logger: Logger): Promise<PeerUsers | undefined> {
  if (auth.enabled || http.socket !== "") return undefined;
  const everyone = "auth is off: anyone who reaches the port can call every tool and use every mounted folder";
  if (!isLoopbackHost(http.host)) {
    logger.warning(everyone);
    return undefined;
  }
  const { PeerUsers: Opened } = await import("../transport/http/peer-users.ts");
  const peers = http.allowOtherUsers ? undefined : await Opened.open();
  if (peers !== undefined) return peers;
  const hint = "turn auth.enabled on, or listen on http.socket";
  logger.warning("auth is off: every user of this machine can call every tool and use every mounted folder", { hint });
  return undefined;
}

async function startStdio(
  opened: CloseStack,
  options: StartOptions,
  reloadSignal: ReloadSignal,
): Promise<RunningServer> {
  const { loaded, logger } = options;
  const { config } = loaded;
  const output = claimStdout();
  const assembly = await assembled(opened, options, new EarlyWorker(config));
  await assembly.start();
  const reloader = opened.add(reloaderOf(options, assembly, () => undefined));
  const { StdioTransport } = await import("../transport/stdio/stdio-transport.ts");
  const { enabled, besideStdio } = config.dashboard;
  const dashboard =
    enabled && besideStdio
      ? await (
          await import("./open-dashboard.ts")
        ).dashboardBesideStdio(opened, dashboardParts(options, assembly, reloader))
      : undefined;
  await (await import("./operations.ts")).openOperations(opened, operationsOf(options, assembly, dashboard));
  // It answers from the next turn of the event loop on: until then a stop signal must have its handler.
  const transport = new StdioTransport({
    mcp: assembly.mcp,
    clientId: config.stdio.clientId,
    maxLineBytes: config.stdio.maxLineBytes,
    input: process.stdin,
    output,
  });
  opened.defer(() => transport.close(Math.min(STDIO_DEADLINE_MS, config.shutdown.deadlineSeconds * 1000)));
  const running = lifecycle(logger, () => opened.close());
  const stopWatching = onParentDeath((reason) => void running.close(reason));
  opened.defer(stopWatching);
  void transport.ended.then(() => running.close("stdin closed"));
  return served(assembly, { running, reloader, reloadSignal, dashboard });
}

function reloaderOf(
  { loaded, logger, setLevel }: StartOptions,
  assembly: Assembly,
  refreshListener: () => void,
): Reloader {
  const refresh = async (): Promise<void> => {
    refreshListener();
    await assembly.refresh();
  };
  return new Reloader({ loaded, logger, setLevel: (level) => setLevel?.(level), refresh });
}

function dashboardParts({ loaded, logger }: StartOptions, assembly: Assembly, reloader: Reloader): DashboardParts {
  const routes = (): Promise<readonly ApiRoute[]> => assembly.dashboardRoutes(() => reloader.last);
  return { config: loaded.config, logger, routes, acts: assembly.operators?.acts };
}

function operationsOf(
  { loaded, logger }: StartOptions,
  { governance, operator, health, ledgerCheck, metrics, alerts }: Assembly,
  dashboard: Dashboard | undefined,
): OperationsOptions {
  return {
    config: loaded.config,
    logger,
    governance,
    operatorSandboxes: operator,
    health,
    ledgerCheck,
    metrics,
    alerts,
    dashboard: () => dashboard?.address(),
  };
}

interface Started {
  readonly running: Lifecycle;
  readonly reloader: Reloader;
  readonly reloadSignal: ReloadSignal;
  readonly dashboard: Dashboard | undefined;
  readonly url?: string;
}

/** What is left for the time after the first requests are taken. */
function served(assembly: Assembly, { running, reloader, reloadSignal, dashboard, url }: Started): RunningServer {
  assembly.opened();
  reloadSignal.follow(
    () => void reloader.reload("SIGHUP"),
    (reason) => void running.close(reason),
  );
  return {
    ...(url !== undefined && { url }),
    sandboxes: assembly.operator?.health(),
    dashboard: () => dashboard?.address(),
    closed: running.closed,
    close: running.close,
  };
}

interface Lifecycle extends Pick<RunningServer, "closed" | "close"> {
  /** Takes the handlers of signals away again, for a start that failed. */
  abandon(): void;
}

function lifecycle(logger: Logger, stop: () => Promise<void>): Lifecycle {
  let closing: Promise<void> | undefined;
  let exitCode = 0;
  let resolveClosed: (exitCode: number) => void = () => undefined;
  const closed = new Promise<number>((resolve) => {
    resolveClosed = resolve;
  });
  const shutDown = async (reason: string): Promise<void> => {
    logger.info("stopping", { reason });
    try {
      await stop();
      logger.info("stopped");
    } catch (error) {
      logger.error("could not stop cleanly", { error });
      exitCode = 1;
    } finally {
      abandon();
      resolveClosed(exitCode);
    }
  };
  const close = (reason: string): Promise<void> => (closing ??= shutDown(reason));
  const offSignals = onStopSignal((reason) => void close(reason));
  const offStrayErrors = onStrayErrors(logger, (reason) => {
    exitCode = 1;
    void close(reason);
  });
  const abandon = (): void => {
    offSignals();
    offStrayErrors();
  };
  return { closed, close, abandon };
}

/**
 * Keeps stdout for the protocol: whatever else writes there, a handler's `console.log` first of all, lands on stderr.
 * Must run before any code of the user's is loaded.
 */
export function claimStdout(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  const output = new Writable({
    decodeStrings: false,
    write: (chunk: string | Uint8Array, _encoding, done) => void write(chunk, done),
  });
  process.stdout.write = process.stderr.write.bind(process.stderr);
  // A client that is gone shows here first; its end of stdin follows, and stops the server.
  process.stdout.on("error", () => undefined);
  output.on("error", () => undefined);
  return output;
}
