import { renameSync, writeFileSync } from "node:fs";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, SECRET, startGoverned, token, writeFile } from "../integration/governance-lab.ts";
import { until } from "../integration/harness.ts";

/** Claims of a valid token that a layer of the policy, or an operator who reads the ledger, would miss or take for another. */
let server: Awaited<ReturnType<typeof startGoverned>>;
const policyFile = writeFile("claims.yaml", JSON.stringify({ groups: { interns: { deny: ["echo"] } } }));

beforeAll(async () => {
  server = await startGoverned({ governance: { policyFile }, hasAuth: true });
});

afterAll(() => server.stop());

function tokenWith(claims: Record<string, unknown>): Promise<string> {
  const jwt = new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).setSubject("ivan").setExpirationTime("1h");
  return jwt.sign(Buffer.from(SECRET));
}

async function echoAs(bearer: string): Promise<{ readonly status: number; readonly data: unknown }> {
  const { status, body } = await call(server.url, "echo", { text: "x" }, { token: bearer });
  return { status, data: body.error?.data };
}

describe("the claim that names groups", () => {
  test.each([[["interns"]], ["interns"]])("%j denies what the group is denied", async (groups) => {
    expect(await echoAs(await tokenWith({ groups }))).toMatchObject({ data: { kind: "governance_denied" } });
  });

  test.each([
    { interns: true },
    { 0: "interns" },
    [["interns"]],
    [{ name: "interns" }],
    ["interns", 7],
    [null],
    7,
    true,
    null,
  ])("%j, which is no list of names, is refused with its token", async (groups) => {
    expect(await echoAs(await tokenWith({ groups }))).toMatchObject({ status: 401, data: { reason: "token_claims" } });
  });

  test("is the one that the policy in force names, for tokens that are known already too", async () => {
    const bearer = await tokenWith({ teams: { interns: true } });
    expect(await echoAs(bearer)).toMatchObject({ status: 200, data: undefined });
    writeFileSync(`${policyFile}.next`, JSON.stringify({ groupsClaim: "teams" }));
    renameSync(`${policyFile}.next`, policyFile);
    const refused = await until(
      () => echoAs(bearer),
      ({ status }) => status !== 200,
    );
    expect(refused).toMatchObject({ status: 401, data: { reason: "token_claims" } });
  });
});

describe("a subject that looks like another", () => {
  test.each([
    ["a letter of Cyrillic among Latin ones", "\u0430da"],
    ["a letter of Greek among Latin ones", "ad\u03b1"],
    ["a letter of Cherokee among Latin ones", "\u13a0da"],
    ["the same, behind another word", "team-x/\u0430da"],
    ["full-width letters", "\uff41da"],
    ["a ligature", "of\ufb01ce"],
    ["an accent of its own", "ade\u0301"],
    ["an invisible character", "a\u2060da"],
    ["an invisible character of Korean", "ada\u3164"],
    ["a variation selector", "ada\ufe0f"],
    ["a tag character", "ada\u{e0061}"],
  ])("with %s, is refused", async (_name, subject) => {
    expect(await echoAs(await token(subject))).toMatchObject({ status: 401, data: { reason: "token_claims" } });
  });

  test.each([
    "ada",
    "ad\u00e9",
    "\u0438\u0432\u0430\u043d",
    "\u0438\u0432\u0430\u043d@example.com",
    "\u5c0f\u738babc",
    "\u30e6\u30fc\u30b6\u30fc01",
    "auth0|6421f",
    "\u03b1\u03b2-team",
  ])("is not what %j is", async (subject) => {
    expect(await echoAs(await token(subject))).toMatchObject({ status: 200, data: undefined });
  });
});
