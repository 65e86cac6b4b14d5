import type { IncomingHttpHeaders } from "node:http";
import { BlockList, isIP } from "node:net";
import { parseAddressRange } from "../../config/value-rules.ts";

/** What tells where a request comes from. */
export interface Arrival {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: IncomingHttpHeaders;
}

/** No chain of real proxies is longer; what stands before these is not read. */
const MAX_HOPS = 32;
const MAX_HEADER_CHARS = 4096;
const IPV4_IN_IPV6 = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;

/**
 * Finds out which address a request comes from. A proxy in `http.trustedProxies` is believed when it says for whom it asks: the
 * address is then the rightmost one of `X-Forwarded-For` that is not a trusted proxy, since everything to the left of it is what
 * that client sent itself. `Forwarded` is read where there is no `X-Forwarded-For`.
 */
export class ClientAddresses {
  readonly #trusted = new BlockList();
  readonly #trustsAny: boolean;

  /** @param trustedProxies Addresses and CIDR ranges, as the config schema has checked them. */
  constructor(trustedProxies: readonly string[]) {
    this.#trustsAny = trustedProxies.length > 0;
    for (const text of trustedProxies) {
      const range = parseAddressRange(text);
      if (range !== undefined) this.#trusted.addSubnet(range.address, range.prefix, range.family);
    }
  }

  /** The empty text when the connection is already closed. */
  of({ socket, headers }: Arrival): string {
    const peer = plainAddress(socket.remoteAddress ?? "");
    if (!this.#trustsAny || !this.#isTrusted(peer)) return peer;
    let client = peer;
    for (const hop of hopsOf(headers).slice(-MAX_HOPS).toReversed()) {
      const address = addressOf(hop);
      // What a trusted proxy does not know, or does not say, is asked no further.
      if (address === undefined) return client;
      client = address;
      if (!this.#isTrusted(address)) return client;
    }
    return client;
  }

  /** Whether it is an address or in a range of `http.trustedProxies`. */
  isTrustedProxy(address: string): boolean {
    return this.#trustsAny && this.#isTrusted(plainAddress(address));
  }

  #isTrusted(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#trusted.check(address, version === 4 ? "ipv4" : "ipv6");
  }
}

/** From the farthest to the nearest. */
function hopsOf(headers: IncomingHttpHeaders): readonly string[] {
  const list = textOf(headers["x-forwarded-for"]);
  if (list !== undefined) return list.split(",");
  const forwarded = textOf(headers["forwarded"]);
  if (forwarded === undefined) return [];
  return forwarded.split(",").map((element) => /(?:^|;)\s*for\s*=\s*("?)([^";]*)\1/i.exec(element)?.[2] ?? "");
}

/** The end of a long header is what the nearest proxies wrote. */
function textOf(header: string | readonly string[] | undefined): string | undefined {
  const text = typeof header === "string" ? header : header?.join(",");
  return text?.slice(-MAX_HEADER_CHARS);
}

/** `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`; nothing for `unknown`, `_hidden` and the like. */
function addressOf(hop: string): string | undefined {
  const text = hop.trim();
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  const address = plainAddress(bare);
  return isIP(address) === 0 ? undefined : address;
}

/** IPv4 is IPv4, also where a socket for both kinds says it in the form of the other. No zone: it means nothing elsewhere. */
function plainAddress(address: string): string {
  const [withoutZone = ""] = address.split("%");
  return IPV4_IN_IPV6.exec(withoutZone)?.[1] ?? withoutZone;
}
