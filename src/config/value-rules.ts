import { isIPv4, isIPv6, isIP } from "node:net";

/** Whether a server on this address is reachable only from this machine. */
export function isLoopbackHost(host: string): boolean {
  const bare = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  if (bare === "localhost" || bare.endsWith(".localhost")) return true;
  if (isIPv4(bare)) return bare.startsWith("127.");
  // The URL parser normalizes the spelling of an IPv6 address.
  return (
    isIPv6(bare) && /^\[::(1|ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4})\]$/.test(parseUrl(`http://[${bare}]`)?.hostname ?? "")
  );
}

/** An origin as browsers send it: scheme, host and port, without a path. `*` is accepted too. */
export function isCorsOrigin(text: string): boolean {
  if (text === "*") return true;
  const url = parseUrl(text);
  // A wildcard inside a host name looks like a pattern but would match nothing.
  if (url === undefined || text.includes("*")) return false;
  // `origin` differs from the text when the text contains a path, a user or a default port.
  if (url.protocol === "https:" || url.protocol === "http:") return url.origin === text;
  // Browser extensions and webviews have origins with their own schemes, for which the URL parser returns "null".
  return /^[a-z][a-z0-9+-]*:\/\/[a-z0-9.-]+$/.test(text) && url.protocol !== "file:";
}

/** Keys sent over plain http could be replaced in transit, so plain http is allowed for loopback only. */
export function isJwksUrl(text: string): boolean {
  const url = parseUrl(text);
  if (url === undefined || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url.hostname));
}

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
// They would affect the guest, or replace variables that the server sets.
const RESERVED_ENV = /^(OWLCLAW_.*|LD_.*|NODE_OPTIONS|NODE_PATH|BASH_ENV|ENV|HOME|PATH|TMPDIR)$/;

/** Why a sandbox cannot have a variable of this name; undefined when it can. */
export function whyNoEnvName(name: string): string | undefined {
  if (!ENV_NAME.test(name)) return "is no name for a variable: use letters, digits and _";
  return RESERVED_ENV.test(name) ? "is reserved: the sandbox sets it itself, leave it out" : undefined;
}

const SYSTEM_FOLDERS =
  /^\/(usr|bin|sbin|lib|lib32|lib64|libx32|etc|proc|sys|dev|run|tmp|var|boot|root|opt\/owlclaw|opt\/owlclaw-node)(\/|$)/;

/** Whether mounting at this path of a sandbox hides no part of its system. */
export function isFreeGuestPath(path: string): boolean {
  return (
    /^(\/[A-Za-z0-9._-]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path) && !SYSTEM_FOLDERS.test(path) && path !== "/opt"
  );
}

export function isWorkspacePath(path: string): boolean {
  return isFreeGuestPath(path);
}

/** Alerts and ledger heads are confidential, so plain http is allowed for loopback only. */
export function isWebhookUrl(text: string): boolean {
  return isJwksUrl(text);
}

export function isStoreUrl(text: string): boolean {
  return /^postgres(?:ql)?:$/.test(parseUrl(text)?.protocol ?? "");
}

/** A server URL consists of scheme, host and port, without a path. */
export function isServerUrl(text: string): boolean {
  const url = parseUrl(text);
  return (url?.protocol === "https:" || url?.protocol === "http:") && url.origin === text;
}

export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** A single address, or a range of addresses with the same prefix. */
export interface AddressRange {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** Parses `10.0.0.7`, `10.0.0.0/8` or `2001:db8::/32`. Undefined for any other text. */
export function parseAddressRange(text: string): AddressRange | undefined {
  const [address = "", bits, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || address.includes("%") || more.length > 0) return undefined;
  const longest = version === 4 ? 32 : 128;
  if (bits !== undefined && !/^\d{1,3}$/.test(bits)) return undefined;
  const prefix = bits === undefined ? longest : Number(bits);
  return prefix > longest ? undefined : { address, prefix, family: version === 4 ? "ipv4" : "ipv6" };
}

/** Longer delays overflow the 32-bit milliseconds of Node's timers and fire at once. */
export const MAX_TIMER_MS = 2_147_483_647;
