import { type AddressClass, classifyAddress } from "../../config/hosts/address-class.ts";
import type { Target } from "./admission.ts";
import { type Dial, dialAddress } from "./dial.ts";
import { parseHost } from "../../config/hosts/host.ts";
import { hostHeaderAgrees } from "./request-target.ts";

/** The checks of the proxy. A test can replace one to show that its attack succeeds without it. No configuration reaches them. */
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
    // A target by address is allowed by that address: the server name may be any.
    return host.kind === "address" || parsed.host.name === host.name;
  },
};

/** The limits of the proxy. */
export interface EgressLimits {
  readonly maxHeaderBytes: number;
  readonly maxHeaders: number;
  /** Time for a whole request head. */
  readonly headerTimeoutMs: number;
  readonly resolveTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** A connection without traffic for this long is closed. */
  readonly idleTimeoutMs: number;
  /** The same after the client has ended its side. */
  readonly halfClosedTimeoutMs: number;
  /** Per sandbox. */
  readonly maxConnections: number;
  /** Over all sandboxes. */
  readonly maxConnectionsTotal: number;
  /** Decisions that are kept for each sandbox. */
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
