import { UntrustedConfigError, ConfigError } from "../config/config-error.ts";
import { type LoadedConfig, loadConfig, type LoadOptions } from "../config/load.ts";
import { PACKAGE_VERSION } from "../config/package-version.ts";
import type { CommandCall } from "./command.ts";
import { serverLogger } from "./command-logger.ts";
import { toLoadOptions } from "./config-flags.ts";
import { startSummary } from "./start-summary.ts";
import type { Terminal } from "./terminal.ts";

/** On stdio, stdout is reserved for the protocol. This command prints everything to stderr. */
export async function startCommand({ terminal, flags }: CommandCall): Promise<number> {
  const loaded = await loadTrusted(toLoadOptions(flags), terminal);
  const logger = serverLogger(loaded, terminal);
  const { startServer } = await import("../server/start.ts");
  const server = await startServer({ loaded, logger, setLevel: (level) => (logger.level = level) }).catch(
    (error: unknown) => {
      throw explainListenProblem(error, loaded);
    },
  );
  const { url, sandboxes } = server;
  // The link gives access to the dashboard, so it is shown on a terminal only and never logged.
  const dashboard = terminal.errIsTty ? server.dashboard?.() : undefined;
  const facts = { version: PACKAGE_VERSION, sandboxes, dashboard, ...(url === undefined ? {} : { url }) };
  const { fields, lines } = startSummary(loaded, facts);
  if (terminal.errIsTty) terminal.err(`${lines.join("\n")}\n`);
  else logger.info("server started", fields);
  return server.closed;
}

/** For an untrusted config file that was found, it asks the user on a terminal; elsewhere the start fails. */
async function loadTrusted(options: LoadOptions, terminal: Terminal): Promise<LoadedConfig> {
  try {
    return await loadConfig(options);
  } catch (error) {
    if (!(error instanceof UntrustedConfigError) || !process.stdin.isTTY || !terminal.errIsTty) throw error;
    const { askForTrust } = await import("./trust.ts");
    if (!(await askForTrust(terminal, error))) throw error;
    return loadConfig(options);
  }
}

const REASONS: Readonly<Record<string, { path: "http.port" | "http.host"; reason: string; fix: string }>> = {
  EADDRINUSE: {
    path: "http.port",
    reason: "the port is in use by another process",
    fix: "stop that process, or choose another port with --port or MCP_SERVER_PORT (0: any free one)",
  },
  EACCES: {
    path: "http.port",
    reason: "this user may not listen on the port",
    fix: "choose a port from 1024 up with --port or MCP_SERVER_PORT",
  },
  EADDRNOTAVAIL: {
    path: "http.host",
    reason: "this machine does not have the address",
    fix: "set --host or MCP_SERVER_HOST to localhost or an address of this machine",
  },
  ENOTFOUND: {
    path: "http.host",
    reason: "the name has no address",
    fix: "set --host or MCP_SERVER_HOST to localhost or an address of this machine",
  },
};

const SOCKET_PROBLEM = {
  path: "http.socket",
  reason: "the socket cannot be made: its folder is missing or not writable, or something else is or listens there",
  fix: "choose a path in an existing folder of this user, of at most 107 bytes",
} as const;

/** Turns the failure to open a socket into a configuration error. Any other error is returned unchanged. */
export function explainListenProblem(error: unknown, { config, sources }: LoadedConfig): unknown {
  const problem = REASONS[listenErrorCode(error) ?? ""];
  if (problem === undefined) return error;
  const { path, reason, fix } = config.http.socket === "" ? problem : SOCKET_PROBLEM;
  const { layer, name: source } = sources.get(path) ?? { layer: "default", name: "default" };
  const { http } = config;
  const value = JSON.stringify({ "http.port": http.port, "http.host": http.host, "http.socket": http.socket }[path]);
  return new ConfigError([{ path, value, reason, fix, layer, source }]);
}

function listenErrorCode(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const isOpening = "syscall" in cause && (cause.syscall === "listen" || cause.syscall === "getaddrinfo");
    if (isOpening && "code" in cause && typeof cause.code === "string") return cause.code;
  }
  return undefined;
}
