import { setTimeout as delay } from "node:timers/promises";
import type { DockerHost } from "./docker-host.ts";
import { removeLeftovers } from "./reap.ts";

const FIRST_PAUSE_MS = 2000;
const MAX_PAUSE_MS = 60_000;
/** A server that stops does not wait longer for an engine: the next one removes the rest. */
const LAST_TRY_MS = 5000;

/** Tries to remove what an engine refused to, at growing distances: it may refuse for long. */
export class Leftovers {
  readonly #host: DockerHost;
  #pauseMs = FIRST_PAUSE_MS;
  #nextAtMs = 0;
  #trying: Promise<void> | undefined;

  constructor(host: DockerHost) {
    this.#host = host;
  }

  /** Waits for nothing: an engine that takes its time to remove things is not away. */
  tryAgain(): void {
    if (this.#isEmpty) this.#pauseMs = FIRST_PAUSE_MS;
    else if (performance.now() >= this.#nextAtMs) void this.#try();
  }

  async tryForTheLastTime(): Promise<void> {
    const finished = (async () => {
      await this.#trying;
      if (!this.#isEmpty) await this.#try();
    })();
    await Promise.race([finished, delay(LAST_TRY_MS, undefined, { ref: false })]);
  }

  get #isEmpty(): boolean {
    return this.#host.leftovers.size === 0 && this.#host.leftVolumes.size === 0;
  }

  #try(): Promise<void> {
    this.#trying ??= removeLeftovers(this.#host).finally(() => {
      this.#trying = undefined;
      this.#nextAtMs = performance.now() + this.#pauseMs;
      this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    });
    return this.#trying;
  }
}
