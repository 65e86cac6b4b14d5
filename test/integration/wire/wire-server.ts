import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthenticator } from "../../../src/auth/authenticator.ts";
import { configSchema } from "../../../src/config/schema.ts";
import { assemble, type Assembly } from "../../../src/server/assemble.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { openHttpListener } from "../../../src/transport/http/http-listener.ts";
import { HttpTransport } from "../../../src/transport/http/http-transport.ts";
import { HANDLERS, MANY_CALLS } from "../../escape/server.ts";
import { SHOP, skillFolder } from "../skill-fixture.ts";

const CONFORMANCE_HANDLERS = join(import.meta.dirname, "../../conformance/handlers");

/** The server under the recording: one for all connections over stdio, Streamable HTTP and HTTP+SSE. */
export interface WireServer {
  readonly mcp: Assembly["mcp"];
  readonly origin: string;
  close(): Promise<void>;
}

export async function startWireServer(): Promise<WireServer> {
  const folder = await mkdtemp(join(tmpdir(), "owlclaw-test-"));
  const config = configSchema.parse({
    transport: "http",
    http: { host: "127.0.0.1", port: 0 },
    handlers: { paths: [HANDLERS, CONFORMANCE_HANDLERS] },
    sandbox: { enabled: false, root: folder },
    skills: { dir: skillFolder(SHOP) },
    governance: {
      defaults: MANY_CALLS,
      rules: [{ id: "no-tone", effect: "deny", when: 'uri == "skill://support/tone"', reason: "not for everybody" }],
    },
  });
  const assembly = await assemble({ config, logger: SILENT_LOGGER });
  const authenticator = await createAuthenticator({ auth: config.auth, logger: SILENT_LOGGER });
  const listener = await openHttpListener(config.http, SILENT_LOGGER);
  const transport = new HttpTransport({ mcp: assembly.mcp, config, authenticator, listener });
  const origin = transport.serve();
  return {
    mcp: assembly.mcp,
    origin,
    async close() {
      await transport.drain(0);
      await listener.close();
      await assembly.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
