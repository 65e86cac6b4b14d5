import { expect, test } from "vitest";
import { protectedResourceMetadata } from "../../../src/auth/protected-resource-metadata.ts";

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
