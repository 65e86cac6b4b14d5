import { readFileSync } from "node:fs";
import { uptime } from "node:os";

/** Two clocks: one that tells the date and may be set, and one that only ever goes forward. */
export interface Clock {
  /** Milliseconds since the epoch. */
  wallMs(): number;
  /** Milliseconds since the machine started, the same for all its processes. */
  steadyMs(): number;
  /** Changes when the steady clock starts anew. */
  readonly bootId: string;
}

export function systemClock(): Clock {
  // Both go by the same clock of the machine, from different beginnings; this one makes no big numbers.
  const beganMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  return {
    wallMs: () => Date.now(),
    steadyMs: () => Math.floor(beganMs + performance.now()),
    bootId: readBootId(),
  };
}

function readBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Elsewhere the time of the start stands for it, roughly: a wrong guess only makes limits stricter for a minute.
    return `booted-${Math.round((Date.now() / 1000 - uptime()) / 60)}`;
  }
}
