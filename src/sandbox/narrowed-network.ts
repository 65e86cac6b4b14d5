import { OwlError } from "../errors/owl-error.ts";
import type { Network } from "./place.ts";
import type { SandboxWish } from "./sandbox-wish.ts";

/** Callers may have less than the operator allows, never more. */
export function narrowed(usual: Network, { isOffline = false, network }: SandboxWish): Network {
  if (isOffline) return { allow: [] };
  if (network === undefined) return usual;
  const beyond = network.find((host) => !usual.allow.includes(host));
  if (beyond === undefined) return { allow: network };
  const known = usual.allow.length === 0 ? "nothing" : usual.allow.join(", ");
  throw new OwlError("invalid_arguments", `sandboxes of this template may not reach "${beyond.slice(0, 100)}"`, {
    hint: `choose among what the operator allows: ${known}`,
  });
}
