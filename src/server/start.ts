import { Writable } from "node:stream";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { isLoopbackHost } from "../config/value-rules.ts";
import type { Logger, LoggerLevel } from "../telemetry/logger.ts";
import type { HttpDoor } from "../transport/http/http-door.ts";
import type { PeerUsers } from "../transport/http/peer-users.ts";
import type { Assembly, AssembleOptions } from "./assemble.ts";
import { EarlyWorker } from "../handlers/workers/launch-process.ts";
import type { DashboardAddress } from "../operator/operator-sessions.ts";
import type { OpenRuntime } from "../sandbox/open-runtime.ts";
import type { SandboxHealth } from "../sandbox/sandbox-health.ts";
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
  /** Reads again what the transport itself has read. */
  readonly refresh?: () => void;
  /** Resolves with the exit code when everything has stopped. */
  readonly closed: Promise<number>;
  close(reason: string): Promise<void>;
}

/** Starts what calls need before any is taken, and stops in reverse on a signal, on EOF or on `close`. */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  const reloadSignal = hearReloadSignal();
  try {
    return await started(options, reloadSignal);
  } catch (error) {
    reloadSignal.off();
    throw error;
  }
}

async function started(options: StartOptions, reloadSignal: ReloadSignal): Promise<RunningServer> {
  const { loaded, logger, openRuntime } = options;
  const output = loaded.config.transport === "stdio" ? claimStdout() : undefined;
  const { assembly, door } = await assembled({
    config: loaded.config,
    volumes: loaded.volumes,
    logger,
    openRuntime,
    loaded,
  });
  try {
    await assembly.start();
    await assembly.operations.open();
    const running =
      output === undefined
        ? await startHttp(loaded, { assembly, logger, door })
        : await startStdio(loaded, { assembly, logger, output });
    assembly.opened();
    followChanges(options, { assembly, running, reloadSignal });
    const dashboard = (): DashboardAddress | undefined => assembly.operations.dashboard?.address();
    return { ...running, sandboxes: assembly.operator?.health(), dashboard };
  } catch (error) {
    await assembly.close();
    await door?.close();
    throw error;
  }
}

interface Opened {
  readonly assembly: Assembly;
  /** The port, where there is one. Whoever asks there hears that the server is starting. */
  readonly door: HttpDoor | undefined;
}

/** The greater part of the code is loaded only after the first process has been started. */
async function assembled(options: AssembleOptions): Promise<Opened> {
  const { config, logger } = options;
  const earlyWorker = new EarlyWorker(config);
  let door: HttpDoor | undefined;
  try {
    if (config.transport === "http")
      door = await (await import("../transport/http/http-door.ts")).openHttpDoor(config.http, logger);
    const { assemble } = await import("./assemble.ts");
    return { door, assembly: await assemble({ ...options, earlyWorker }) };
  } catch (error) {
    await door?.close();
    throw error;
  } finally {
    earlyWorker.dismiss();
  }
}

interface Followed {
  readonly assembly: Assembly;
  readonly running: RunningServer;
  readonly reloadSignal: ReloadSignal;
}

function followChanges(
  { loaded, logger, setLevel }: StartOptions,
  { assembly, running, reloadSignal }: Followed,
): void {
  const refresh = async (): Promise<void> => {
    running.refresh?.();
    await assembly.refresh();
  };
  const reloader = new Reloader({ loaded, logger, setLevel: (level) => setLevel?.(level), refresh });
  assembly.operations.reloader = reloader;
  reloadSignal.follow(
    () => void reloader.reload("SIGHUP"),
    (reason) => void running.close(reason),
  );
  void running.closed.then(() => {
    reloadSignal.off();
    reloader.close();
  });
}

interface HttpParts extends Opened {
  readonly logger: Logger;
}

async function startHttp({ config }: LoadedConfig, { assembly, logger, door }: HttpParts): Promise<RunningServer> {
  const [{ createAuthenticator }, { HttpTransport }] = await Promise.all([
    import("../auth/authenticator.ts"),
    import("../transport/http/http-transport.ts"),
  ]);
  const { mcp, files, operator, operators, cluster, groupsClaim } = assembly;
  const authenticator = await createAuthenticator({ auth: config.auth, logger, groupsClaim });
  const { health, metrics } = assembly.operations;
  const { dashboardOverHttp } = await import("./open-dashboard.ts");
  const dashboard = await dashboardOverHttp({ config, logger, assembly }, authenticator);
  const transport = new HttpTransport({
    mcp,
    config,
    authenticator,
    peers: await peersOf(config, logger),
    files,
    operator,
    forwards: cluster?.door,
    homes: cluster?.sessions,
    health,
    metrics,
    dashboard: dashboard?.gate,
    door,
    ...operators,
  });
  assembly.operations.certificate = () => transport.certificate;
  const stop = async (): Promise<void> => {
    await cluster?.leave();
    dashboard?.close();
    await transport.drain(config.shutdown.deadlineSeconds * 1000);
    authenticator.close();
    try {
      await assembly.close();
    } finally {
      await transport.close();
    }
  };
  // Before anything is answered: a stop signal must have its handler then.
  const running = lifecycle(logger, stop);
  const shown = config.http.socket === "" ? dashboard : undefined;
  const url = await listening(transport, shown, cluster).catch(async (error: unknown) => {
    running.abandon();
    authenticator.close();
    await transport.drain(0);
    await transport.close();
    throw error;
  });
  logger.info("listening", { url: `${url}/mcp`, ...(config.http.socket !== "" && { socket: config.http.socket }) });
  return { url: `${url}/mcp`, refresh: () => transport.refresh(), ...running };
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

/** Opens the port, and tells those who pass its address on. */
async function listening(
  transport: { listen(): Promise<string> },
  dashboard: { listensAt(url: string): void } | undefined,
  cluster: { announce(url: string): Promise<void> } | undefined,
): Promise<string> {
  const url = await transport.listen();
  dashboard?.listensAt(url);
  await cluster?.announce(url);
  return url;
}

interface StdioParts {
  readonly assembly: Assembly;
  readonly logger: Logger;
  readonly output: Writable;
}

async function startStdio({ config }: LoadedConfig, { assembly, logger, output }: StdioParts): Promise<RunningServer> {
  const { StdioTransport } = await import("../transport/stdio/stdio-transport.ts");
  const { enabled, besideStdio } = config.dashboard;
  const dashboard =
    enabled && besideStdio
      ? await (await import("./open-dashboard.ts")).dashboardBesideStdio({ config, logger, assembly })
      : undefined;
  // It answers from the next turn of the event loop on: until then a stop signal must have its handler.
  const transport = new StdioTransport({
    mcp: assembly.mcp,
    clientId: config.stdio.clientId,
    maxLineBytes: config.stdio.maxLineBytes,
    input: process.stdin,
    output,
  });
  const running = lifecycle(logger, async () => {
    await dashboard?.close();
    await transport.close(Math.min(STDIO_DEADLINE_MS, config.shutdown.deadlineSeconds * 1000));
    await assembly.close();
  });
  const stopWatching = onParentDeath((reason) => void running.close(reason));
  void transport.ended.then(() => running.close("stdin closed"));
  void running.closed.then(stopWatching);
  return running;
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
