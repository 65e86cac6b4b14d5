import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createAuthenticator } from "../../../src/auth/authenticator.ts";
import { mintToken } from "../../../src/auth/mint-token.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { authWith, createClock, failureOf } from "./auth-fixture.ts";

const secret = randomBytes(48).toString("base64");
const minted = { secret, subject: "alice", scopes: ["read", "owlclaw:admin"], expiresInSeconds: 3600 };

test("makes a token that a server with the same secret, issuer and audience accepts", async () => {
  const { now, nowSeconds } = createClock();
  const auth = authWith({ secret, issuer: "dev", audience: "owlclaw" });
  const authenticator = await createAuthenticator({ auth, clock: now, logger: SILENT_LOGGER });
  const token = await mintToken({ ...minted, issuer: "dev", audience: "owlclaw", clock: now });
  const principal = await authenticator.authenticate(`Bearer ${token}`);
  expect(principal).toEqual({
    id: "alice",
    scopes: ["read", "owlclaw:admin"],
    claims: {
      sub: "alice",
      scope: "read owlclaw:admin",
      iss: "dev",
      aud: "owlclaw",
      iat: nowSeconds(),
      exp: nowSeconds() + 3600,
      jti: expect.any(String),
    },
    expiresAt: nowSeconds() + 3600,
  });
});

test("makes a token that a server with another secret refuses", async () => {
  const authenticator = await createAuthenticator({ auth: authWith({ secret: `${secret}x` }), logger: SILENT_LOGGER });
  const token = await mintToken(minted);
  expect(await failureOf(() => authenticator.authenticate(`Bearer ${token}`))).toMatchObject({
    facts: { reason: "token_signature" },
  });
});

describe("refuses", () => {
  test.each([
    ["an empty secret", { secret: "" }],
    ["a reserved subject", { subject: "anonymous" }],
    ["an empty subject", { subject: "" }],
    ["no lifetime", { expiresInSeconds: 0 }],
    ["half a second", { expiresInSeconds: 0.5 }],
    ["a lifetime that is no number", { expiresInSeconds: Number.NaN }],
    ["a scope with a space", { scopes: ["read owlclaw:admin"] }],
  ])("%s", async (_, change) => {
    expect(await failureOf(() => mintToken({ ...minted, ...change }))).toMatchObject({ kind: "invalid_params" });
  });
});
