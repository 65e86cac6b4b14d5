import { createHmac } from "node:crypto";

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token for the server of governed.yaml. */
export function governedToken(): string {
  const exp = Math.floor(Date.now() / 1000) + 86_400;
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part({ sub: "bench", iss: "bench", aud: "owlclaw", exp })}`;
  const secret = "a-secret-that-only-the-benchmark-uses";
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}
