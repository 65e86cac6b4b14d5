import type { Timing } from "../contract/guest.ts";
import { AsyncLocalStorage } from "node:async_hooks";

const MAX_TIMINGS = 16;

/** Times of one request, for the server's trace. They count from the arrival of the request. */
class Timings {
  readonly #startMs = performance.now();
  readonly list: Timing[] = [];

  add(name: Timing["name"], startMs: number, durationMs: number): void {
    if (this.list.length < MAX_TIMINGS) this.list.push({ name, startMs: startMs - this.#startMs, durationMs });
  }

  whole(): Timing {
    return { name: "request", startMs: 0, durationMs: performance.now() - this.#startMs };
  }
}

const storage = new AsyncLocalStorage<Timings>();

/** Records a time when the request is traced. */
export function noteTiming(name: Timing["name"], startMs: number, durationMs: number): void {
  storage.getStore()?.add(name, startMs, durationMs);
}

/** Serves a request. With `traceparent`, the times are added to its result. */
export async function serveTimed<T extends object>(
  params: object,
  serve: () => T | Promise<T>,
): Promise<T | (T & { readonly timings: readonly Timing[] })> {
  if (!("traceparent" in params)) return await serve();
  const timings = new Timings();
  const result = await storage.run(timings, serve);
  return { ...result, timings: [timings.whole(), ...timings.list] };
}
