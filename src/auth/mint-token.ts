import { randomUUID } from "node:crypto";
import { SignJWT } from "jose";
import { OwlError } from "../errors/owl-error.ts";
import { isScope, principalIdProblem } from "./principal-from-claims.ts";

interface MintTokenOptions {
  readonly secret: string;
  /** Becomes the principal's id. */
  readonly subject: string;
  readonly scopes: readonly string[];
  readonly expiresInSeconds: number;
  readonly issuer?: string;
  readonly audience?: string;
  /** Milliseconds since the epoch. Default: the system's clock. */
  readonly clock?: () => number;
}

/** A token for development: HS256, signed with the server's own secret. */
export async function mintToken(options: MintTokenOptions): Promise<string> {
  const { secret, subject, scopes, expiresInSeconds, issuer = "", audience = "", clock = Date.now } = options;
  if (secret === "")
    throw invalid("The secret is empty.", "Set auth.jwt.secret or MCP_AUTH_JWT_SECRET to the server's own.");
  const problem = principalIdProblem(subject);
  if (problem !== undefined) throw invalid(`The subject ${problem}.`, "Choose another subject.");
  if (!Number.isSafeInteger(expiresInSeconds) || expiresInSeconds <= 0) {
    throw invalid("The lifetime is not a whole number of seconds above zero.", "Say for example 3600 for one hour.");
  }
  const badScope = scopes.find((scope) => !isScope(scope));
  if (badScope !== undefined)
    throw invalid(
      `The scope ${JSON.stringify(badScope)} is not valid.`,
      "Use printable ASCII without spaces and quotes.",
    );
  const nowSeconds = Math.floor(clock() / 1000);
  const token = new SignJWT(scopes.length === 0 ? {} : { scope: scopes.join(" ") })
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setSubject(subject)
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + expiresInSeconds)
    .setJti(randomUUID());
  if (issuer !== "") token.setIssuer(issuer);
  if (audience !== "") token.setAudience(audience);
  return token.sign(Buffer.from(secret, "utf8"));
}

function invalid(message: string, hint: string): OwlError {
  return new OwlError("invalid_params", message, { hint });
}
