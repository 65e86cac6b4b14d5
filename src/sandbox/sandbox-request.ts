import type { Principal } from "../auth/principal.ts";
import type { Flavor } from "./flavors.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Network, InstanceOptions } from "./instance-starter.ts";
import { randomBytes } from "node:crypto";

const SECRET_BYTES = 24;

/** The principal of a call and its MCP session. */
export interface SandboxCaller {
  readonly principal: Principal;
  readonly sessionId: string | undefined;
}

/** Options of a new sandbox; absent ones are as configured. */
export interface SandboxRequest {
  readonly template?: string | undefined;
  readonly flavor?: Flavor | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly isOffline?: boolean | undefined;
  /** A subset of the hosts that the operator allows. */
  readonly network?: readonly string[] | undefined;
  readonly idleMs?: number | undefined;
  readonly maxAgeMs?: number | undefined;
}

export interface Sharing {
  /** Whether sandboxes with and without a network may write to the same volumes. */
  readonly sharesVolumes: boolean;
  readonly defaults: Pick<InstanceOptions, "volumes">;
}

/** The network of a new sandbox: at most what the operator allows. */
export function narrowed(usual: Network, request: SandboxRequest, sharing: Sharing): Network {
  return assertMayShare(chosen(usual, request), usual, sharing);
}

function chosen(usual: Network, { isOffline = false, network }: SandboxRequest): Network {
  if (isOffline) return { allow: [] };
  if (network === undefined) return usual;
  const beyond = network.find((host) => !usual.allow.includes(host));
  if (beyond === undefined) return { allow: network };
  const known = usual.allow.length === 0 ? "nothing" : usual.allow.join(", ");
  throw new OwlError("invalid_arguments", `sandboxes of this template may not reach "${beyond.slice(0, 100)}"`, {
    hint: `choose among what the operator allows: ${known}`,
  });
}

/** A sandbox without network could pass data through a shared writable folder to one with a network. */
function assertMayShare(network: Network, usual: Network, { sharesVolumes, defaults: { volumes } }: Sharing): Network {
  const isApart = network.allow.length === 0 && usual.allow.length > 0;
  if (sharesVolumes || !isApart || volumes.every(({ isReadOnly }) => isReadOnly)) return network;
  const message = "a sandbox without network would share writable folders with sandboxes that have one";
  throw new OwlError("invalid_arguments", message, {
    hint: "leave offline out; the operator can allow it with sandbox.network.shareVolumes: true",
  });
}

/** A random id. In a cluster it begins with the id of the server that owns the sandbox. */
export function newSessionId(serverId: string | undefined): string {
  const secret = randomBytes(SECRET_BYTES).toString("base64url");
  return serverId === undefined ? secret : `${serverId}.${secret}`;
}

/** The server that a session id names; `undefined` for ids of a single server. */
export function serverIdOf(sessionId: string): string | undefined {
  return /^([A-Za-z0-9_-]{12})\.[A-Za-z0-9_-]{32}$/.exec(sessionId)?.[1];
}
