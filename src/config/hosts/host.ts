import { isIPv4, isIPv6 } from "node:net";
import { domainToASCII } from "node:url";

/** A host in its canonical form, with one spelling for each name and each address. */
export type Host =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "address"; readonly address: string };

export type ParsedHost = { readonly host: Host } | { readonly problem: string };

const MAX_NAME_CHARS = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
// In the URL standard, a host whose last label is a number must be an IPv4 address.
const NUMERIC_LABEL = /^(?:[0-9]+|0x[0-9a-f]*)$/;

/**
 * Parses a host as clients send it. Addresses in other spellings (decimal, octal, hex, short) are normalized. Forms
 * that resolvers and parsers may interpret differently are rejected.
 */
export function parseHost(text: string): ParsedHost {
  if (text.startsWith("[") || text.includes(":")) return parseBracketed(text);
  if (!/^[A-Za-z0-9._-]+$/.test(text)) return { problem: "the host holds characters that no host name has" };
  const lower = text.toLowerCase();
  const name = lower.endsWith(".") ? lower.slice(0, -1) : lower;
  const labels = name.split(".");
  if (NUMERIC_LABEL.test(labels.at(-1) ?? "")) return parseNumeric(name);
  if (name.length > MAX_NAME_CHARS) return { problem: "the host name is longer than 253 characters" };
  if (!labels.every((label) => LABEL.test(label))) return { problem: "the host name has an empty or malformed label" };
  return { host: { kind: "name", name } };
}

/** The ASCII form of a name that may be in another script. */
export function toAsciiName(text: string): string | undefined {
  // The URL standard silently removes line breaks and tabs. Such text is returned unchanged, so that `parseHost`
  // rejects it.
  if (/^[\0-\x7f]*$/.test(text) || /[\0-\x20\x7f]/.test(text)) return text;
  const ascii = domainToASCII(text);
  return ascii === "" ? undefined : ascii;
}

export function formatHost(host: Host): string {
  if (host.kind === "name") return host.name;
  return isIPv6(host.address) ? `[${host.address}]` : host.address;
}

function parseBracketed(text: string): ParsedHost {
  const inner = /^\[([^[\]]*)\]$/.exec(text)?.[1];
  if (inner === undefined) return { problem: "an IPv6 address stands in square brackets" };
  if (inner.includes("%")) return { problem: "IPv6 zone ids are not accepted" };
  const address = isIPv6(inner) ? hostnameOf(text)?.slice(1, -1) : undefined;
  return address === undefined ? { problem: "not an IPv6 address" } : { host: { kind: "address", address } };
}

function parseNumeric(text: string): ParsedHost {
  const address = hostnameOf(text);
  if (address === undefined || !isIPv4(address)) {
    return { problem: "the host ends in a number but is no IPv4 address" };
  }
  return { host: { kind: "address", address } };
}

function hostnameOf(host: string): string | undefined {
  try {
    return new URL(`http://${host}/`).hostname;
  } catch {
    return undefined;
  }
}
