import { createAuthenticator } from "../src/auth/authenticator.ts";
import { loadConfig } from "../src/config/load.ts";
import { assemble } from "../src/server/assemble.ts";
import { claimStdout } from "../src/server/claim-stdout.ts";
import { createLogger } from "../src/telemetry/logger.ts";
import { HttpTransport } from "../src/transports/http/http-transport.ts";
import { StdioTransport } from "../src/transports/stdio/stdio-transport.ts";

/**
 * Our own server with nobody asked and nothing recorded: what governance costs is the difference. There is no setting for
 * it. Usage: owlclaw-ungoverned http|stdio CONFIG
 */
const [, , door = "http", file = ""] = process.argv;
const output = door === "stdio" ? claimStdout() : undefined;
const { config: read } = await loadConfig({ file });
const config = { ...read, http: { ...read.http, port: 0 } };
const logger = createLogger({ level: "info", format: "json" });
const assembly = await assemble({ config, logger, isGoverned: false });
await assembly.start();
const { mcp } = assembly;
if (output === undefined) {
  const authenticator = await createAuthenticator({ auth: config.auth, logger });
  const transport = new HttpTransport({ mcp, config, authenticator });
  logger.info("listening", { url: await transport.listen() });
} else {
  const { clientId, maxLineBytes } = config.stdio;
  const transport = new StdioTransport({ mcp, clientId, maxLineBytes, input: process.stdin, output });
  void transport.ended.then(() => process.exit(0));
}
process.once("SIGTERM", () => process.exit(0));
