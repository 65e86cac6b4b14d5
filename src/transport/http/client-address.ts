import type { IncomingHttpHeaders } from "node:http";
import { BlockList, isIP } from "node:net";
import { parseAddressRange } from "../../config/value-rules.ts";

/** The parts of a request that contain its client address. */
export interface Arrival {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: IncomingHttpHeaders;
}

/** Entries beyond this number are ignored. Real proxy chains are shorter. */
const MAX_HOPS = 32;
const MAX_HEADER_CHARS = 4096;
const IPV4_IN_IPV6 = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;

/**
 * Determines the client address of a request. Forwarding headers count only when the connection comes from a proxy in
 * `http.trustedProxies`. The address is then the rightmost one of `X-Forwarded-For` that is not a trusted proxy,
 * because the client itself may have sent everything to the left of it. `Forwarded` is read when there is no
 * `X-Forwarded-For`.
 */
export class ClientAddresses {
  readonly #trusted = new BlockList();
  readonly #trustsAny: boolean;

  /** @param trustedProxies Addresses and CIDR ranges, validated by the config schema. */
  constructor(trustedProxies: readonly string[]) {
    this.#trustsAny = trustedProxies.length > 0;
    for (const text of trustedProxies) {
      const range = parseAddressRange(text);
      if (range !== undefined) this.#trusted.addSubnet(range.address, range.prefix, range.family);
    }
  }

  /** Returns an empty text when the connection is already closed. */
  of({ socket, headers }: Arrival): string {
    const peer = plainAddress(socket.remoteAddress ?? "");
    if (!this.#trustsAny || !this.#isTrusted(peer)) return peer;
    let client = peer;
    for (const hop of hopsOf(headers).slice(-MAX_HOPS).toReversed()) {
      const address = addressOf(hop);
      // A trusted proxy sent no valid address, so entries to the left are not read.
      if (address === undefined) return client;
      client = address;
      if (!this.#isTrusted(address)) return client;
    }
    return client;
  }

  /** Whether the address is listed in `http.trustedProxies`, or in a range of it. */
  isTrustedProxy(address: string): boolean {
    return this.#trustsAny && this.#isTrusted(plainAddress(address));
  }

  #isTrusted(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#trusted.check(address, version === 4 ? "ipv4" : "ipv6");
  }
}

/** The hops, from the client to the nearest proxy. */
function hopsOf(headers: IncomingHttpHeaders): readonly string[] {
  const list = textOf(headers["x-forwarded-for"]);
  if (list !== undefined) return list.split(",");
  const forwarded = textOf(headers["forwarded"]);
  if (forwarded === undefined) return [];
  return forwarded.split(",").map((element) => /(?:^|;)\s*for\s*=\s*("?)([^";]*)\1/i.exec(element)?.[2] ?? "");
}

/** Of a long header only the end is read: the nearest proxies wrote it. */
function textOf(header: string | readonly string[] | undefined): string | undefined {
  const text = typeof header === "string" ? header : header?.join(",");
  return text?.slice(-MAX_HEADER_CHARS);
}

/**
 * Parses `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`. Undefined for `unknown`, `_hidden` and
 * the like.
 */
function addressOf(hop: string): string | undefined {
  const text = hop.trim();
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  const address = plainAddress(bare);
  return isIP(address) === 0 ? undefined : address;
}

/**
 * Converts an IPv4-mapped IPv6 address of a dual-stack socket to IPv4, and removes a zone id, which is valid only on
 * this machine.
 */
function plainAddress(address: string): string {
  const [withoutZone = ""] = address.split("%");
  return IPV4_IN_IPV6.exec(withoutZone)?.[1] ?? withoutZone;
}
