import { type AddressClass, classifyAddress } from "../../config/hosts/address-class.ts";
import type { Target } from "./admission.ts";
import { type Dial, dialAddress } from "./dial.ts";
import { parseHost } from "../../config/hosts/host.ts";
import { hostHeaderAgrees } from "./request-target.ts";

/** The checks of the proxy, each a function, so that a test can take one away and see its attack succeed. No configuration reaches them. */
export interface EgressControls {
  readonly classify: (address: string) => AddressClass | undefined;
  readonly dial: Dial;
  readonly hostHeaderAgrees: (header: string | undefined, target: Target & { readonly isConnect: boolean }) => boolean;
  readonly serverNameAgrees: (serverName: string, target: Target) => boolean;
}

export const ALL_CONTROLS: EgressControls = {
  classify: classifyAddress,
  dial: dialAddress,
  hostHeaderAgrees,
  serverNameAgrees: (serverName, { host }) => {
    const parsed = parseHost(serverName);
    if (!("host" in parsed) || parsed.host.kind !== "name") return false;
    // Whoever connects to a listed address by its number may call the host there by any name.
    return host.kind === "address" || parsed.host.name === host.name;
  },
};

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
