import { signal } from "@preact/signals";

/** Two clocks for all ages on the page: an age in minutes need not be rendered every second. */
const seconds = signal(Date.now());
const tens = signal(Date.now());
const NEAR_MS = 120_000;

setInterval(() => tick(seconds), 1_000);
setInterval(() => tick(tens), 10_000);

function tick(clock: typeof seconds): void {
  if (!document.hidden) clock.value = Date.now();
}

/** The current time. It updates every second for times close to now, and every ten seconds for others. */
export function nowNear(timeMs: number): number {
  const clock = Math.abs(Date.now() - timeMs) < NEAR_MS ? seconds : tens;
  return clock.value;
}
