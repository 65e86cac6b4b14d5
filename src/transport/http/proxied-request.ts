import type { IncomingHttpHeaders } from "node:http";

/** What proxies add to a request: then the caller is somebody behind them, wherever the connection comes from. */
const PROXY_HEADERS = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"] as const;

export function isProxied(headers: IncomingHttpHeaders): boolean {
  return PROXY_HEADERS.some((name) => headers[name] !== undefined);
}
