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
