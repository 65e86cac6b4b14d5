import { randomFillSync } from "node:crypto";

/** One look at the source of randomness for many ids. */
const pool = Buffer.allocUnsafe(4096);
let used = pool.length;

function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.toString("hex", used - bytes, used);
}

export function newSpanId(): string {
  return randomHex(8);
}

/** 128 random bits, as W3C Trace Context wants them. */
export function newRandomTraceId(): string {
  return randomHex(16);
}
