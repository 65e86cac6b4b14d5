import { loadConfig } from "../config/load.ts";
import type { LocalServer } from "../server/local-client.ts";
import type { CommandCall } from "./command-action.ts";
import { quietLogger } from "./command-logger.ts";
import { toLoadOptions } from "./config-flags.ts";

/** Opens what the server would serve, without any transport, for as long as `use` needs it. */
export async function withLocalServer<T>(
  { terminal, flags }: CommandCall,
  use: (server: LocalServer) => Promise<T>,
): Promise<T> {
  const loaded = await loadConfig(toLoadOptions(flags));
  const { openLocal } = await import("../server/local-client.ts");
  const server = await openLocal({ loaded, logger: quietLogger(loaded, terminal) });
  try {
    return await use(server);
  } finally {
    await server.close();
  }
}
