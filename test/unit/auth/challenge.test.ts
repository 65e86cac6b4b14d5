import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { challenge } from "../../../src/auth/challenge.ts";
import { ANONYMOUS } from "../../../src/auth/principal.ts";
import { requireScope } from "../../../src/auth/require-scope.ts";
import { refuseToken } from "../../../src/auth/token-refusal.ts";
import { OwlError } from "../../../src/errors/owl-error.ts";
import { failureOf } from "./auth-fixture.ts";

const resourceMetadataUrl = "https://owl.test/.well-known/oauth-protected-resource";

describe("WWW-Authenticate", () => {
  test("has no error for a caller that sent no token", () => {
    expect(challenge(refuseToken("token_missing", "A token is needed."), { resourceMetadataUrl })).toBe(
      `Bearer resource_metadata="${resourceMetadataUrl}"`,
    );
  });

  test("says invalid_token and why", () => {
    expect(challenge(refuseToken("token_expired", "The token has expired."), { resourceMetadataUrl })).toBe(
      `Bearer error="invalid_token", error_description="The token has expired.", resource_metadata="${resourceMetadataUrl}"`,
    );
  });

  test("says insufficient_scope and which scope is needed", async () => {
    const failure = await failureOf(() => requireScope(ANONYMOUS, "owlclaw:admin"));
    expect(failure.kind).toBe("forbidden");
    expect(challenge(failure, { resourceMetadataUrl })).toBe(
      `Bearer error="insufficient_scope", error_description="This needs the scope owlclaw:admin.", scope="owlclaw:admin", resource_metadata="${resourceMetadataUrl}"`,
    );
  });

  test("stays one header of well-formed parameters, whatever the texts hold", () => {
    const shape =
      /^Bearer error="[\x20\x21\x23-\x5b\x5d-\x7e]*", error_description="[\x20\x21\x23-\x5b\x5d-\x7e]*", scope="[\x20\x21\x23-\x5b\x5d-\x7e]*", resource_metadata="[\x20\x21\x23-\x5b\x5d-\x7e]*"$/;
    const hostile = fc.string({ unit: fc.constantFrom('"', "\\", "\r", "\n", ",", "\u0000", "é", "a", " ") });
    fc.assert(
      fc.property(hostile, hostile, hostile, (message, scope, url) => {
        const error = new OwlError("forbidden", message, { facts: { scope } });
        expect(challenge(error, { resourceMetadataUrl: url })).toMatch(shape);
      }),
    );
  });
});

test("requireScope lets a principal with the scope pass", () => {
  expect(() => requireScope({ ...ANONYMOUS, scopes: ["read", "owlclaw:admin"] }, "owlclaw:admin")).not.toThrow();
});
