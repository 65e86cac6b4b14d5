import fc from "fast-check";
import { expect, test, describe } from "vitest";
import { protectedResourceMetadata, requireScope, challenge } from "../../../src/auth/protected-resource.ts";
import { ANONYMOUS } from "../../../src/auth/principal.ts";
import { refuseToken } from "../../../src/auth/bearer-token.ts";
import { OwlError } from "../../../src/errors/owl-error.ts";
import { failureOf } from "./auth-fixture.ts";

const resource = "https://owl.test/mcp";
const scopes = ["owlclaw:admin"];

test("names the resource, its authorization server and its scopes", () => {
  expect(protectedResourceMetadata({ resource, issuer: "https://issuer.test", scopes })).toEqual({
    resource,
    authorization_servers: ["https://issuer.test"],
    scopes_supported: ["owlclaw:admin"],
    bearer_methods_supported: ["header"],
    resource_name: "OwlClaw",
  });
});

test.each(["", "my-company"])("announces no authorization server for the issuer %j", (issuer) => {
  expect(protectedResourceMetadata({ resource, issuer, scopes })).not.toHaveProperty("authorization_servers");
});

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
