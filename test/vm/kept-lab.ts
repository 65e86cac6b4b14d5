import type { Client } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll } from "vitest";
import { connectHttp } from "../e2e/sandbox-client.ts";
import type { ServedRuntime } from "./keeper-order.ts";
import { type KeptPlace, urlOf } from "./kept-place.ts";

export const CANARY: string = `canary-${Math.random().toString(36).slice(2)}`;
/** Everything takes some fifty times as long in a machine that is emulated. */
const CALL_TIMEOUT_MS = 600_000;

/** Starts it before the first test of a block, ends it after the last, and shows the log of one that failed. */
export function keptPlace(start: () => Promise<KeptPlace>): () => KeptPlace {
  let place: KeptPlace | undefined;
  beforeAll(async () => {
    place = await start();
  });
  afterEach(({ task }) => {
    // Nobody sees the log of a machine that was switched off.
    if (task.result?.state === "fail" && place !== undefined) process.stderr.write(`${place.lastWords()}\n`);
  });
  afterAll(async () => await place?.stop());
  return () => {
    if (place === undefined) throw new Error("the servers have not started");
    return place;
  };
}

/** Two ports of the machine that somebody listens on. */
export function portsOf({ order }: KeptPlace, runtime: ServedRuntime): readonly number[] {
  return [order.ports[runtime], order.keeper.port];
}

export async function connectPatiently(place: KeptPlace, runtime: ServedRuntime): Promise<Client> {
  const client = await connectHttp(urlOf(place, runtime));
  const callTool = client.callTool.bind(client);
  client.callTool = (params, options) => callTool(params, { timeout: CALL_TIMEOUT_MS, ...options });
  return client;
}
