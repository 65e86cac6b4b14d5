import type { Config } from "../config/schema.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import { followProcess } from "../telemetry/metrics/process-metrics.ts";

export interface OpenMetrics {
  close(): Promise<void>;
}

/** Measures the process from now on, and lets others read on an address of their own where the operator wants that. */
export async function openMetrics(metrics: Metrics, { telemetry }: Config, logger: Logger): Promise<OpenMetrics> {
  const stop = followProcess(metrics);
  const listener =
    telemetry.metricsAddress === "" ? undefined : await listen(metrics, telemetry.metricsAddress, logger);
  return {
    async close() {
      stop();
      await listener?.close();
    },
  };
}

async function listen(door: Metrics, address: string, logger: Logger): Promise<{ close(): Promise<void> }> {
  const { listenForMetrics } = await import("../transport/http/metrics-listener.ts");
  return listenForMetrics({ address, door, logger }).catch((error: unknown) => {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    // Without its cause: whoever explains listeners that fail would take it for the server's own port.
    throw new Error(`telemetry.metricsAddress: ${address} cannot be used (${code}); choose another address or port`);
  });
}
