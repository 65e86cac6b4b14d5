import { OwlError } from "../errors/owl-error.ts";

/** Large issuers publish a few dozen keys in a few tens of kilobytes. */
const MAX_KEY_SET_BYTES = 256 * 1024;

interface FetchKeySetOptions {
  readonly url: URL;
  readonly signal: AbortSignal;
  readonly fetch: typeof fetch;
}

/** The text of a JWKS. Anything but a plain 200 of a sane size is an error, a redirect too: it could lead anywhere. */
export async function fetchKeySet({ url, signal, fetch }: FetchKeySetOptions): Promise<string> {
  const response = await fetch(url, {
    signal,
    redirect: "error",
    headers: { accept: "application/jwk-set+json, application/json" },
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the answer has status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const body: AsyncIterable<Uint8Array> | readonly Uint8Array[] = response.body ?? [];
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > MAX_KEY_SET_BYTES) throw new Error(`the answer is longer than ${MAX_KEY_SET_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Over plain HTTP, whoever sits on the wire could put in a key of their own: loopback has no wire. */
export function parseJwksUrl(value: string): URL {
  const hint = "Use an https:// URL without user and password; http:// is for loopback only.";
  if (!URL.canParse(value))
    throw new OwlError("internal", "auth.jwt.jwksUrl is not a URL.", { hint, retryable: false });
  const url = new URL(value);
  const isSafe = url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
  if (isSafe && url.username === "" && url.password === "") return url;
  throw new OwlError("internal", "auth.jwt.jwksUrl is not safe to fetch keys from.", { hint, retryable: false });
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
