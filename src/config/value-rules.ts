import { isIPv4, isIPv6 } from "node:net";

/** Whether only this machine can reach a server that listens there. */
export function isLoopbackHost(host: string): boolean {
  const bare = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  if (bare === "localhost" || bare.endsWith(".localhost")) return true;
  if (isIPv4(bare)) return bare.startsWith("127.");
  // The URL parser brings every spelling of an IPv6 address to one.
  return (
    isIPv6(bare) && /^\[::(1|ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4})\]$/.test(parseUrl(`http://[${bare}]`)?.hostname ?? "")
  );
}

/** An origin as browsers send it: scheme, host and port, nothing behind them. `*` is accepted by name. */
export function isCorsOrigin(text: string): boolean {
  if (text === "*") return true;
  const url = parseUrl(text);
  // A wildcard inside a host name looks like a pattern but would match nothing.
  if (url === undefined || text.includes("*")) return false;
  // `origin` differs from the text when a path, a user or a default port is there.
  if (url.protocol === "https:" || url.protocol === "http:") return url.origin === text;
  // Browser extensions and webviews have origins of their own schemes, which the URL parser calls "null".
  return /^[a-z][a-z0-9+-]*:\/\/[a-z0-9.-]+$/.test(text) && url.protocol !== "file:";
}

/** Keys that travel in the clear could be replaced on the way, so plain http is for this machine only. */
export function isJwksUrl(text: string): boolean {
  const url = parseUrl(text);
  if (url === undefined || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url.hostname));
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}
