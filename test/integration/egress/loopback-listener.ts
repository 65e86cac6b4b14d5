import { onTestFinished } from "vitest";
import { createEgress, type EgressOptions } from "../../../src/sandbox/network/egress.ts";
import type { EgressListener } from "../../../src/sandbox/network/egress-listener.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { temporaryFolder } from "../../unit/config/temporary-folder.ts";

/** A door through which names under `.test` lead to these ports of loopback. */
export async function openLoopbackDoor(
  ports: readonly number[],
  options: Partial<EgressOptions> = {},
): Promise<EgressListener> {
  const resolve = async (): Promise<readonly string[]> => ["127.0.0.1"];
  const egress = createEgress({ logger: SILENT_LOGGER, folder: temporaryFolder(), resolve, ...options });
  onTestFinished(async () => await egress.close());
  const allow = ports.flatMap((port) => [`127.0.0.1:${port}`, `site.test:${port}`, `*.site.test:${port}`]);
  return await egress.open({ sandboxId: "one", allow });
}
