/** What one sandbox may take of the proxy. */
export interface EgressLimits {
  readonly maxHeaderBytes: number;
  readonly maxHeaders: number;
  /** Time for a whole request head. */
  readonly headerTimeoutMs: number;
  readonly resolveTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** A connection on which nothing moves for this long ends. */
  readonly idleTimeoutMs: number;
  /** The same, once the client has said that it sends no more. */
  readonly halfClosedTimeoutMs: number;
  /** Per sandbox. */
  readonly maxConnections: number;
  /** Over all sandboxes. */
  readonly maxConnectionsTotal: number;
  /** Decisions that a door remembers. */
  readonly maxDecisions: number;
}

export const DEFAULT_LIMITS: EgressLimits = {
  maxHeaderBytes: 16 * 1024,
  maxHeaders: 100,
  headerTimeoutMs: 10_000,
  resolveTimeoutMs: 5000,
  connectTimeoutMs: 10_000,
  idleTimeoutMs: 120_000,
  halfClosedTimeoutMs: 10_000,
  maxConnections: 64,
  maxConnectionsTotal: 2048,
  maxDecisions: 256,
};
