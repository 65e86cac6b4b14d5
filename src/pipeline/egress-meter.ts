interface Reading {
  readonly bytesMoved: () => number;
  readonly atStart: number;
}

/**
 * What the sandboxes of one call have moved over their network while it ran. Connections are the sandbox's and not the
 * call's: of two calls that share a sandbox at the same time each pays for what moved in its own time.
 */
export class EgressMeter {
  #readings: Reading[] | undefined;

  add(bytesMoved: () => number): void {
    (this.#readings ??= []).push({ bytesMoved, atStart: bytesMoved() });
  }

  bytes(): number {
    const readings = this.#readings ?? [];
    return readings.reduce((sum, { bytesMoved, atStart }) => sum + Math.max(0, bytesMoved() - atStart), 0);
  }
}
