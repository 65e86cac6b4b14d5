import { describe, expect, test } from "vitest";
import { principalFromClaims } from "../../../src/auth/principal-from-claims.ts";
import { isOperator } from "../../../src/auth/principal.ts";
import { failureOf } from "./auth-fixture.ts";

describe("who a token speaks for", () => {
  test.each([
    [{ sub: "alice" }, "alice"],
    [{ sub: "alice", client_id: "app" }, "alice"],
    [{ client_id: "app" }, "app"],
    [{ sub: "auth0|5f7c8ec7" }, "auth0|5f7c8ec7"],
    [{ sub: "李雷 (研发)" }, "李雷 (研发)"],
    [{ sub: "a".repeat(256) }, "a".repeat(256)],
    [{ sub: "anonymous2" }, "anonymous2"],
  ])("%j", (claims, id) => {
    expect(principalFromClaims(claims, "groups").id).toBe(id);
  });

  test.each([
    {},
    { sub: null },
    { sub: "" },
    { sub: 7 },
    { sub: "anonymous" },
    { sub: "STDIO" },
    { sub: "a\tb" },
    { sub: "a\u2028b" },
    { client_id: "" },
  ])("refuses %j", async (claims) => {
    expect(await failureOf(() => principalFromClaims(claims, "groups"))).toMatchObject({
      kind: "unauthorized",
      facts: { reason: "token_claims" },
    });
  });
});

describe("scopes", () => {
  test.each([
    [{}, []],
    [{ scope: "" }, []],
    [{ scope: "read  write read" }, ["read", "write"]],
    [{ scp: "read write" }, ["read", "write"]],
    [{ scp: ["read", "https://graph.test/.default"] }, ["read", "https://graph.test/.default"]],
    [{ scope: "read", scp: ["owlclaw:admin"] }, ["read"]],
  ])("%j", (claims, scopes) => {
    expect(principalFromClaims({ sub: "alice", ...claims }, "groups").scopes).toEqual(scopes);
  });

  test.each([
    { scope: 1 },
    { scope: ["read"] },
    { scope: 'a"b' },
    { scope: "é" },
    { scp: [1] },
    { scp: [""] },
    { scp: ["a b"] },
    { scp: {} },
  ])("refused: %j", async (claims) => {
    expect(await failureOf(() => principalFromClaims({ sub: "alice", ...claims }, "groups"))).toMatchObject({
      facts: { reason: "token_claims" },
    });
  });

  test("owlclaw:admin makes an operator, and nothing that only looks like it", () => {
    const scopes = ["owlclaw:admin", "owlclaw:administrator", "OWLCLAW:ADMIN", "owlclaw"];
    expect(scopes.map((scope) => isOperator(principalFromClaims({ sub: "alice", scope }, "groups")))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

test("a principal is immutable", () => {
  const principal = principalFromClaims({ sub: "alice", scope: "read" }, "groups");
  expect([principal, principal.scopes, principal.claims].every(Object.isFrozen)).toBe(true);
});
