import { describe, expect, test } from "vitest";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { challenge } from "../../src/auth/protected-resource.ts";
import { OwlError } from "../../src/errors/owl-error.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { createTokenKeys } from "./forge-token.ts";
import { attackedServerAuth, goodToken, tokenAttacks, type AttackedServer } from "./token-attacks.ts";

const keys = createTokenKeys();
const resourceMetadataUrl = "http://localhost:8080/.well-known/oauth-protected-resource";

async function attackedServer(server: AttackedServer) {
  return createAuthenticator({ auth: attackedServerAuth(server, keys), logger: SILENT_LOGGER });
}

describe("token attacks", () => {
  test.each(["rsa", "ec", "secret"] as const)("the token that the attacks bend is good (%s)", async (server) => {
    const authenticator = await attackedServer(server);
    await expect(authenticator.authenticate(`Bearer ${goodToken(server, keys)}`)).resolves.toMatchObject({
      id: "alice",
    });
  });

  test.each(tokenAttacks)("refuses $name ($server)", async ({ server, reason, token }) => {
    const authenticator = await attackedServer(server);
    const authorization = `Bearer ${await token(keys)}`;
    const refusal = await refusalOf(async () => authenticator.authenticate(authorization));
    expect({ kind: refusal.kind, facts: refusal.facts }).toEqual({ kind: "unauthorized", facts: { reason } });
    expect(challenge(refusal, { resourceMetadataUrl })).toMatch(
      /^Bearer error="invalid_token", error_description="[^"\\]+", resource_metadata="[^"\\]+"$/,
    );
    await authenticator.authenticate(`Bearer ${goodToken(server, keys)}`);
    const again = await refusalOf(async () => authenticator.authenticate(authorization));
    expect(again.facts, "on the second try, beside a cached good token").toEqual({ reason });
  });
});

async function refusalOf(call: () => Promise<unknown>): Promise<OwlError> {
  const thrown: unknown = await call().then(
    () => new Error("the token was accepted"),
    (error: unknown) => error,
  );
  if (thrown instanceof OwlError) return thrown;
  throw thrown;
}
