import { createAuthenticator } from "../../dist/auth/authenticator.js";
import { loadConfig } from "../../dist/config/load.js";
import { assemble } from "../../dist/server/assemble.js";
import { createLogger } from "../../dist/telemetry/logger.js";
import { HttpTransport } from "../../dist/transports/http/http-transport.js";

// Our own server with nobody asked and nothing recorded: what governance costs is the difference. There is no setting for it.
const { config } = await loadConfig({ file: new URL("../mcp-server.yaml", import.meta.url).pathname });
const logger = createLogger({ level: "info", format: "json" });
const assembly = await assemble({
  config: { ...config, http: { ...config.http, port: 0 } },
  logger,
  isGoverned: false,
});
await assembly.start();
const authenticator = await createAuthenticator({ auth: config.auth, logger });
const http = { ...config, http: { ...config.http, port: 0 } };
const transport = new HttpTransport({ mcp: assembly.mcp, config: http, authenticator });
logger.info("listening", { url: await transport.listen() });
process.once("SIGTERM", () => process.exit(0));
