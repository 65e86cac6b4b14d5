import { isIP } from "node:net";

/** One address, or all with the same first bits. */
export interface AddressRange {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** `10.0.0.7`, `10.0.0.0/8`, `2001:db8::/32`; nothing when the text is none of them. */
export function parseAddressRange(text: string): AddressRange | undefined {
  const [address = "", bits, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || address.includes("%") || more.length > 0) return undefined;
  const longest = version === 4 ? 32 : 128;
  if (bits !== undefined && !/^\d{1,3}$/.test(bits)) return undefined;
  const prefix = bits === undefined ? longest : Number(bits);
  return prefix > longest ? undefined : { address, prefix, family: version === 4 ? "ipv4" : "ipv6" };
}
