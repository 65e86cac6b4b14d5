/** For everything below `/dashboard`: nothing of it is kept, framed, or taken for something else. */
export const DASHBOARD_HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox",
} as const;

/** The page itself may load what comes from here, and nothing else from anywhere. */
export const PAGE_POLICY: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

/** No feature of the browser is the page's, but to tell of what waits. */
export const PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=(), usb=()";

export const SESSION_COOKIE = "owlclaw_dashboard";

/** The one value of the session's cookie. Two of them would mean that somebody else has set one: then there is none. */
export function sessionKeyOf(cookie: string | undefined): string | undefined {
  const values = (cookie ?? "")
    .split(/[;,]/)
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${SESSION_COOKIE}=`))
    .map((pair) => pair.slice(SESSION_COOKIE.length + 1));
  const [value] = values;
  return values.length === 1 && value !== undefined && /^[\w-]{43}$/.test(value) ? value : undefined;
}

export function sessionCookie(key: string, isSecure: boolean): string {
  return `${SESSION_COOKIE}=${key}; Path=/dashboard; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}

export function endedCookie(isSecure: boolean): string {
  return `${sessionCookie("", isSecure)}; Max-Age=0`;
}
