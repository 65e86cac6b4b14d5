import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below those that the kernel gives to whoever asks for any: nobody gets one of them by chance meanwhile. */
const PORTS = { from: 20_000, to: 32_000 };
/** Each worker of the runner draws from a part of its own, so that two of them never find the same one free. */
const PARTS = 8;
const PART = Number(process.env["VITEST_POOL_ID"] ?? 0) % PARTS;
const given = new Set<number>();

/** Nobody listens there now, and it is given once: whoever is to listen there may take its time. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + randomInt((PORTS.to - PORTS.from) / PARTS) * PARTS + PART;
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, "127.0.0.1");
  try {
    await once(probe, "listening");
  } catch {
    return false;
  }
  probe.close();
  await once(probe, "close");
  return true;
}
