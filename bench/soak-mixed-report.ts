import { atMost, type Goal } from "./report.ts";
import { describeWindow, type SoakWindow } from "./soak-mixed.ts";

/** The last minute against the first. */
const MAX_RATIO = 1.1;
const MAX_GROWTH_MB = 20;
const MAX_LATER_MS = 10;

export function checkMixedSoak(windows: readonly SoakWindow[]): readonly Goal[] {
  const [first, last] = [windows[0], windows.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [
    atMost("CPU for a call, last minute against the first", last.cpuMsPerCall / first.cpuMsPerCall, MAX_RATIO),
    atMost("p50, last minute against the first", last.p50Ms / first.p50Ms, MAX_RATIO),
    atMost("memory, MB more in the last minute", last.rssMegabytes - first.rssMegabytes, MAX_GROWTH_MB),
    atMost("file descriptors, second half against the first", growth(windows, "descriptors"), MAX_RATIO),
    atMost("processes, second half against the first", growth(windows, "processes"), MAX_RATIO),
    atMost("event-loop delay, ms more in the last minute", last.loopDelayMs - first.loopDelayMs, MAX_LATER_MS),
  ];
}

/** By halves: the warm pool follows the demand of the last seconds, up and down. */
function growth(windows: readonly SoakWindow[], of: "descriptors" | "processes"): number {
  const middle = Math.ceil(windows.length / 2);
  const [early, late] = [windows.slice(0, middle), windows.slice(middle)];
  return Math.max(...late.map((window) => window[of])) / Math.max(...early.map((window) => window[of]));
}

export function mixedSoakReport(windows: readonly SoakWindow[]): string {
  return windows.map((window, at) => `${String(at + 1).padStart(3)}  ${describeWindow(window)}`).join("\n");
}
