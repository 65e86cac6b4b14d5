import { UntrustedConfigError } from "../config/config-error.ts";
import { type LoadedConfig, loadConfig, type LoadOptions } from "../config/load.ts";
import { PACKAGE_VERSION } from "../server/package-version.ts";
import type { CommandCall } from "./command-action.ts";
import { serverLogger } from "./command-logger.ts";
import { toLoadOptions } from "./config-flags.ts";
import { explainListenProblem } from "./listen-problem.ts";
import { startSummary } from "./start-summary.ts";
import type { Terminal } from "./terminal.ts";

/** On stdio, stdout belongs to the protocol from here on: everything this command says goes to stderr. */
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
  // The link opens the page: it is for the eyes of a person, and no log is to keep it.
  const dashboard = terminal.errIsTty ? server.dashboard?.() : undefined;
  const facts = { version: PACKAGE_VERSION, sandboxes, dashboard, ...(url === undefined ? {} : { url }) };
  const { fields, lines } = startSummary(loaded, facts);
  if (terminal.errIsTty) terminal.err(`${lines.join("\n")}\n`);
  else logger.info("server started", fields);
  return server.closed;
}

/** On a terminal the user is asked about a file that was found and is not trusted; elsewhere the start is refused. */
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
