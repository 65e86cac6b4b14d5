import { setTimeout as delay } from "node:timers/promises";
import { runLoad } from "./load.ts";
import { startServer } from "./throughput.ts";
import type { Door, Target } from "./targets.ts";

const QUARTERS = 4;
/** Long enough for the collector to give back what the last calls left. */
const REST_MS = 2000;

export interface SoakResult {
  readonly target: string;
  readonly door: Door;
  readonly calls: number;
  /** Memory after each quarter of the calls, at rest. */
  readonly rssMegabytes: readonly number[];
  /** From the half to the end: what flat memory keeps near nothing. */
  readonly growthMegabytes: number;
}

export interface SoakOptions {
  readonly target: Target;
  readonly door: Door;
  readonly calls: number;
  readonly connections: number;
}

export async function soak({ target, door, calls, connections }: SoakOptions): Promise<SoakResult> {
  const server = await startServer(target, door);
  try {
    const rssMegabytes: number[] = [];
    for (let quarter = 0; quarter < QUARTERS; quarter += 1) {
      await runLoad({ server, door, connections, until: { calls: calls / QUARTERS } });
      await delay(REST_MS);
      rssMegabytes.push(await server.rssMegabytes());
    }
    const growthMegabytes = (rssMegabytes[3] ?? Number.NaN) - (rssMegabytes[1] ?? Number.NaN);
    return { target: target.name, door, calls, rssMegabytes, growthMegabytes };
  } finally {
    await server.stop();
  }
}
