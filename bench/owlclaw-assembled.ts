import { createAuthenticator } from "../src/auth/authenticator.ts";
import { loadConfig } from "../src/config/load.ts";
import { assemble } from "../src/server/assemble.ts";
import { claimStdout } from "../src/server/start.ts";
import { createLogger } from "../src/telemetry/logger.ts";
import { openHttpListener } from "../src/transport/http/http-listener.ts";
import { HttpTransport } from "../src/transport/http/http-transport.ts";
import { StdioTransport } from "../src/transport/stdio/stdio-transport.ts";

/**
 * Our own server, with governance or with nobody asked and nothing recorded: what governance costs is the difference. So
 * that it is the only one, neither writes a line about each call nor counts metrics. There is no setting for the latter.
 * Usage: owlclaw-assembled http|stdio CONFIG governed|ungoverned
 */
const [, , door = "http", file = "", kind = "governed"] = process.argv;
const output = door === "stdio" ? claimStdout() : undefined;
const { config: read } = await loadConfig({ file });
const config = { ...read, http: { ...read.http, port: 0 }, telemetry: { ...read.telemetry, metrics: false } };
const logger = createLogger({ level: "info", format: "json" });
const quiet = createLogger({ level: "warning", format: "json" });
const assembly = await assemble({ config, logger: quiet, isGoverned: kind === "governed" });
await assembly.start();
const { mcp } = assembly;
if (output === undefined) {
  const authenticator = await createAuthenticator({ auth: config.auth, logger });
  const transport = new HttpTransport({
    mcp,
    config,
    authenticator,
    listener: await openHttpListener(config.http, quiet),
  });
  logger.info("listening", { url: transport.serve() });
} else {
  const { clientId, maxLineBytes } = config.stdio;
  const transport = new StdioTransport({ mcp, clientId, maxLineBytes, input: process.stdin, output });
  void transport.ended.then(() => process.exit(0));
}
assembly.opened();
process.once("SIGTERM", () => void assembly.close().finally(() => process.exit(0)));
