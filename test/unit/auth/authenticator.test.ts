import { generateKeyPairSync, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { SignJWT } from "jose";
import { describe, expect, test } from "vitest";
import { createAuthenticator, type Authenticator } from "../../../src/auth/authenticator.ts";
import { mintToken } from "../../../src/auth/mint-token.ts";
import { ANONYMOUS } from "../../../src/auth/principal.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { spkiPem } from "../../escape/forge-token.ts";
import { authWith, createClock, createRecordingLogger, failureOf } from "./auth-fixture.ts";

const secret = randomBytes(48).toString("base64");
const clock = createClock();

async function authenticatorWith(jwt: Parameters<typeof authWith>[0] = { secret }): Promise<Authenticator> {
  return createAuthenticator({ auth: authWith(jwt), clock: clock.now, logger: SILENT_LOGGER });
}

async function bearer(claims: Record<string, unknown>): Promise<string> {
  const token = await new SignJWT({ exp: clock.nowSeconds() + 600, ...claims })
    .setProtectedHeader({ alg: "HS256" })
    .sign(Buffer.from(secret));
  return `Bearer ${token}`;
}

describe("with auth off", () => {
  test.each([undefined, "", "Bearer nonsense", "Basic dXNlcjpwYXNz", "x".repeat(100_000)])(
    "ignores the header %#",
    async (header) => {
      const auth = { ...authWith({}), enabled: false };
      const authenticator = await createAuthenticator({ auth, logger: SILENT_LOGGER });
      expect(authenticator.authenticate(header)).toBe(ANONYMOUS);
    },
  );
});

describe("with auth on", () => {
  test("a verified token says who is calling, with which scopes and until when", async () => {
    const authenticator = await authenticatorWith();
    const exp = clock.nowSeconds() + 600;
    const principal = await authenticator.authenticate(
      await bearer({ sub: "alice", scope: "read write", exp, team: "red" }),
    );
    expect(principal).toEqual({
      id: "alice",
      scopes: ["read", "write"],
      claims: { sub: "alice", scope: "read write", exp, team: "red" },
      expiresAt: exp,
    });
  });

  test.each(["bearer", "BEARER", "bEaReR", "Bearer  "])("takes the scheme in any letters: %s", async (scheme) => {
    const authenticator = await authenticatorWith();
    const header = (await bearer({ sub: "alice" })).replace("Bearer", scheme);
    await expect(authenticator.authenticate(header)).resolves.toMatchObject({ id: "alice" });
  });

  test.each([
    [undefined, "token_missing"],
    ["", "token_missing"],
    ["Basic dXNlcjpwYXNz", "token_missing"],
    ["Bearer", "token_malformed"],
    ["Bearer ", "token_malformed"],
    ["Bearer\tabc.def.ghi", "token_malformed"],
    [`Bearer ${"a".repeat(8200)}`, "token_too_large"],
  ])("refuses the header %j", async (header, reason) => {
    const authenticator = await authenticatorWith();
    const failure = await failureOf(() => authenticator.authenticate(header));
    expect({ kind: failure.kind, facts: failure.facts }).toEqual({ kind: "unauthorized", facts: { reason } });
  });

  test("takes client_id when there is no sub", async () => {
    const authenticator = await authenticatorWith();
    await expect(authenticator.authenticate(await bearer({ client_id: "robot" }))).resolves.toMatchObject({
      id: "robot",
    });
  });

  test("checks issuer and audience when they are configured, and one of several audiences is enough", async () => {
    const authenticator = await authenticatorWith({ secret, issuer: "https://issuer.test", audience: "owlclaw" });
    const good = await bearer({ sub: "alice", iss: "https://issuer.test", aud: ["billing", "owlclaw"] });
    await expect(authenticator.authenticate(good)).resolves.toMatchObject({ id: "alice" });
    const failure = await failureOf(async () =>
      authenticator.authenticate(await bearer({ sub: "alice", iss: "https://issuer.test" })),
    );
    expect(failure.facts).toEqual({ reason: "token_audience" });
  });

  test.each([
    ["exp", -29],
    ["nbf", 29],
    ["iat", 29],
  ])("allows 30 seconds of clock skew for %s", async (claim, offset) => {
    const authenticator = await authenticatorWith();
    const inside = await bearer({ sub: "alice", [claim]: clock.nowSeconds() + offset });
    await expect(authenticator.authenticate(inside)).resolves.toMatchObject({ id: "alice" });
    const outside = await bearer({ sub: "alice", [claim]: clock.nowSeconds() + offset + Math.sign(offset) * 2 });
    expect(await failureOf(() => authenticator.authenticate(outside))).toMatchObject({ kind: "unauthorized" });
  });

  test.each([
    ["a reserved sub", { sub: "anonymous" }],
    ["the name of the operator with a link of the dashboard", { sub: "dashboard" }],
    ["no exp", { sub: "alice", exp: undefined }],
    ["another issuer", { sub: "alice", iss: "evil" }],
    ["an end in the past", { sub: "alice", exp: 1 }],
  ])("neither the error nor the log repeats token, claims or secret: %s", async (_, claims) => {
    const logger = createRecordingLogger();
    const auth = authWith({ secret, issuer: "https://issuer.test" });
    const authenticator = await createAuthenticator({ auth, clock: clock.now, logger });
    const header = await bearer({ iss: "https://issuer.test", email: "alice@home.test", ...claims });
    const failure = await failureOf(() => authenticator.authenticate(header));
    expect(logger.lines).toEqual([{ level: "debug", message: "A token was refused.", fields: failure.facts }]);
    const visible = inspect([failure, logger.lines], { depth: null });
    for (const secretText of [secret, "alice@home.test", ...header.replace("Bearer ", "").split(".")]) {
      expect(visible).not.toContain(secretText);
    }
  });
});

describe("known tokens", () => {
  test("are answered at once, with the same principal", async () => {
    const authenticator = await authenticatorWith();
    const header = await bearer({ sub: "alice" });
    const first = authenticator.authenticate(header);
    expect(first).toBeInstanceOf(Promise);
    const principal = await first;
    expect(authenticator.authenticate(header)).toBe(principal);
    expect(authenticator.authenticate(header.replace("Bearer", "BEARER"))).toBe(principal);
  });

  test("are verified again from exp on, and refused once the skew is over", async () => {
    const clock = createClock();
    const authenticator = await createAuthenticator({
      auth: authWith({ secret }),
      clock: clock.now,
      logger: SILENT_LOGGER,
    });
    const header = `Bearer ${await mintToken({ secret, subject: "alice", scopes: [], expiresInSeconds: 60, clock: clock.now })}`;
    await authenticator.authenticate(header);
    clock.advanceSeconds(59);
    expect(authenticator.authenticate(header)).toMatchObject({ id: "alice" });
    clock.advanceSeconds(1);
    const late = authenticator.authenticate(header);
    expect(late).toBeInstanceOf(Promise);
    await expect(late).resolves.toMatchObject({ id: "alice" });
    expect(authenticator.authenticate(header)).toBeInstanceOf(Promise);
    clock.advanceSeconds(30);
    expect(await failureOf(() => authenticator.authenticate(header))).toMatchObject({
      facts: { reason: "token_expired" },
    });
  });

  test("do not let a token in that differs in one character", async () => {
    const authenticator = await authenticatorWith();
    const header = await bearer({ sub: "alice" });
    await authenticator.authenticate(header);
    const flipped = header.at(20) === "A" ? "B" : "A";
    const other = header.slice(0, 20) + flipped + header.slice(21);
    expect(await failureOf(() => authenticator.authenticate(other))).toMatchObject({ kind: "unauthorized" });
  });
});

describe("at start", () => {
  test.each([
    ["no key", {}],
    ["a secret and a public key", { secret, publicKey: "x" }],
    ["a secret and a JWKS URL", { secret, jwksUrl: "https://issuer.test/jwks" }],
  ])("refuses %s", async (_, jwt) => {
    const failure = await failureOf(() => authenticatorWith(jwt));
    expect(failure).toMatchObject({ kind: "internal", message: expect.stringContaining("exactly one of") });
    expect(failure.message + failure.hint).not.toContain(secret);
  });

  test("warns when tokens made for other services would be accepted", async () => {
    const logger = createRecordingLogger();
    const publicKey = spkiPem(generateKeyPairSync("ed25519").publicKey);
    await createAuthenticator({ auth: authWith({ publicKey, audience: "owlclaw" }), logger });
    expect(logger.lines).toEqual([]);
    await createAuthenticator({ auth: authWith({ publicKey }), logger });
    expect(logger.lines).toEqual([
      { level: "warning", message: expect.stringContaining("auth.jwt.audience is empty"), fields: {} },
    ]);
  });
});
