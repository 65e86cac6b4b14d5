import type { UsedSandbox } from "../capability/context.ts";

interface Reading {
  readonly used: UsedSandbox;
  readonly atStart: number;
}

/**
 * What the sandboxes of one call have moved over their network while it ran. Connections are the sandbox's and not the
 * call's: of two calls that share a sandbox at the same time each pays for what moved in its own time.
 */
export class EgressMeter {
  #readings: Reading[] | undefined;

  /** The first that the call used. */
  get sandbox(): UsedSandbox | undefined {
    return this.#readings?.[0]?.used;
  }

  add(used: UsedSandbox): void {
    (this.#readings ??= []).push({ used, atStart: used.bytesMoved });
  }

  bytes(): number {
    const readings = this.#readings ?? [];
    return readings.reduce((sum, { used, atStart }) => sum + Math.max(0, used.bytesMoved - atStart), 0);
  }
}
