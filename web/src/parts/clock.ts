import { signal } from "@preact/signals";

/** Clocks for every age on the page: what is told in minutes need not be drawn again each second. */
const seconds = signal(Date.now());
const tens = signal(Date.now());
const NEAR_MS = 120_000;

setInterval(() => tick(seconds), 1_000);
setInterval(() => tick(tens), 10_000);

function tick(clock: typeof seconds): void {
  if (!document.hidden) clock.value = Date.now();
}

/** The time, for whoever shows how far away another one is. */
export function nowNear(timeMs: number): number {
  const clock = Math.abs(Date.now() - timeMs) < NEAR_MS ? seconds : tens;
  return clock.value;
}
