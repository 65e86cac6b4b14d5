import { generateKeyPairSync, randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createAuthenticator, type Authenticator } from "../../../src/auth/authenticator.ts";
import { RemoteKeys } from "../../../src/auth/remote-keys.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { ecdsa, forgeToken, hmac, rsa, rsaPss, type Signer } from "../../escape/forge-token.ts";
import { authWith, createClock, createRecordingLogger, failureOf } from "./auth-fixture.ts";
import { startJwksServer, type JwksServer } from "./jwks-server.ts";

const MINUTE = 60;
const ISSUER = "https://issuer.test";
const first = generateKeyPairSync("ec", { namedCurve: "P-256" });
const second = generateKeyPairSync("ec", { namedCurve: "P-256" });
const rsaKeys = generateKeyPairSync("rsa", { modulusLength: 2048 });

let jwks: JwksServer;
let clock: ReturnType<typeof createClock>;
let logger: ReturnType<typeof createRecordingLogger>;

beforeEach(async () => {
  jwks = await startJwksServer();
  clock = createClock();
  logger = createRecordingLogger();
});
afterEach(() => jwks.close());

function clocks(): { readonly clock: () => number; readonly steadyClock: () => number } {
  return { clock: clock.now, steadyClock: clock.now };
}

async function open(): Promise<Authenticator> {
  const auth = authWith({ jwksUrl: jwks.url, audience: "owlclaw", issuer: ISSUER });
  return createAuthenticator({ auth, ...clocks(), logger });
}

function bearer(header: object, signer: Signer): string {
  const payload = { sub: "alice", aud: "owlclaw", iss: ISSUER, exp: clock.nowSeconds() + 24 * 60 * MINUTE };
  return `Bearer ${forgeToken({ header, payload, signer })}`;
}

function signedBy(pair: typeof first, kid: string): string {
  return bearer({ alg: "ES256", kid }, ecdsa(pair.privateKey));
}

describe("keys from a JWKS URL", () => {
  test("verify tokens by kid, and known tokens at once without asking again", async () => {
    jwks.serve({ one: first.publicKey, two: second.publicKey });
    const authenticator = await open();
    for (const header of [signedBy(first, "one"), signedBy(second, "two")]) {
      await expect(authenticator.authenticate(header)).resolves.toMatchObject({ id: "alice" });
      expect(authenticator.authenticate(header)).toMatchObject({ id: "alice" });
    }
    expect(jwks.requests).toBe(1);
  });

  test("verify a token without kid when one key fits, and refuse it when several do", async () => {
    jwks.serve({ one: first.publicKey, rsa: rsaKeys.publicKey });
    const authenticator = await open();
    const header = bearer({ alg: "ES256" }, ecdsa(first.privateKey));
    await expect(authenticator.authenticate(header)).resolves.toMatchObject({ id: "alice" });
    jwks.serve({ one: first.publicKey, two: second.publicKey });
    const later = await open();
    expect(await failureOf(() => later.authenticate(header))).toMatchObject({ facts: { reason: "token_key_unknown" } });
  });

  test("an RSA key without alg verifies RS256 and PS256", async () => {
    jwks.serve({ rsa: rsaKeys.publicKey });
    const authenticator = await open();
    await expect(
      authenticator.authenticate(bearer({ alg: "RS256", kid: "rsa" }, rsa(rsaKeys.privateKey))),
    ).resolves.toBeDefined();
    await expect(
      authenticator.authenticate(bearer({ alg: "PS256", kid: "rsa" }, rsaPss(rsaKeys.privateKey))),
    ).resolves.toBeDefined();
  });

  test("a token that uses the kid of another's key is refused", async () => {
    jwks.serve({ one: first.publicKey, two: second.publicKey });
    const authenticator = await open();
    expect(await failureOf(() => authenticator.authenticate(signedBy(first, "two")))).toMatchObject({
      facts: { reason: "token_signature" },
    });
  });
});

describe("rotation", () => {
  test("a new key is fetched when a token names it", async () => {
    jwks.serve({ one: first.publicKey });
    const authenticator = await open();
    jwks.serve({ one: first.publicKey, two: second.publicKey });
    clock.advanceSeconds(31);
    await expect(authenticator.authenticate(signedBy(second, "two"))).resolves.toMatchObject({ id: "alice" });
    expect(jwks.requests).toBe(2);
  });

  test("invented kids cause one request in 30 seconds, however many come", async () => {
    jwks.serve({ one: first.publicKey });
    const authenticator = await open();
    clock.advanceSeconds(31);
    const flood = Array.from({ length: 200 }, (_, index) =>
      failureOf(() => authenticator.authenticate(signedBy(second, `invented-${index}`))),
    );
    for (const failure of await Promise.all(flood))
      expect(failure).toMatchObject({ facts: { reason: "token_key_unknown" } });
    await failureOf(() => authenticator.authenticate(signedBy(second, "one-more")));
    expect(jwks.requests).toBe(2);
    clock.advanceSeconds(31);
    await failureOf(() => authenticator.authenticate(signedBy(second, "one-more")));
    expect(jwks.requests).toBe(3);
  });

  test("a key that left the set no longer verifies, and tokens known through it die with the refresh", async () => {
    jwks.serve({ one: first.publicKey, two: second.publicKey });
    const authenticator = await open();
    const header = signedBy(first, "one");
    await authenticator.authenticate(header);
    jwks.serve({ two: second.publicKey });
    clock.advanceSeconds(31);
    expect(authenticator.authenticate(header), "before any refresh").toMatchObject({ id: "alice" });
    await failureOf(() => authenticator.authenticate(signedBy(first, "unknown")));
    expect(await failureOf(() => authenticator.authenticate(header))).toMatchObject({
      facts: { reason: "token_key_unknown" },
    });
  });

  test("known tokens alone are enough traffic to notice a withdrawn key, in the background", async () => {
    jwks.serve({ one: first.publicKey });
    const authenticator = await open();
    const header = signedBy(first, "one");
    await authenticator.authenticate(header);
    jwks.serve({});
    clock.advanceSeconds(5 * MINUTE);
    expect(authenticator.authenticate(header)).toMatchObject({ id: "alice" });
    await vi.waitFor(
      () => expect(logger.lines.filter(({ message }) => message === "The JWKS changed.")).toHaveLength(2),
      20_000,
    );
    expect(await failureOf(() => authenticator.authenticate(header))).toMatchObject({
      facts: { reason: "token_key_unknown" },
    });
  });

  test("a key that is replaced under the same kid ends the tokens of the old one", async () => {
    jwks.serve({ one: first.publicKey });
    const authenticator = await open();
    const header = signedBy(first, "one");
    await authenticator.authenticate(header);
    jwks.serve({ one: second.publicKey });
    clock.advanceSeconds(15 * MINUTE);
    expect(await failureOf(() => authenticator.authenticate(header))).toMatchObject({
      facts: { reason: "token_signature" },
    });
  });

  test("a token that was being verified while the keys changed is not remembered", async () => {
    jwks.serve({ one: first.publicKey });
    const authenticator = await open();
    jwks.serve({ one: first.publicKey, two: second.publicKey });
    clock.advanceSeconds(31);
    const header = signedBy(second, "two");
    await authenticator.authenticate(header);
    const again = authenticator.authenticate(header);
    expect(again).toBeInstanceOf(Promise);
    await again;
    expect(authenticator.authenticate(header)).toMatchObject({ id: "alice" });
  });
});

describe("when the key server is down", () => {
  test("the server starts, says so, refuses for now, and recovers", async () => {
    jwks.answerWith((response) => response.writeHead(500).end());
    const authenticator = await open();
    expect(logger.lines).toEqual([
      {
        level: "warning",
        message: "The JWKS cannot be fetched.",
        fields: { url: jwks.url, error: "the answer has status 500" },
      },
    ]);
    const header = signedBy(first, "one");
    expect(await failureOf(() => authenticator.authenticate(header))).toMatchObject({
      kind: "overloaded",
      retryable: true,
    });
    expect(jwks.requests, "no second request right after a failure").toBe(1);
    jwks.serve({ one: first.publicKey });
    clock.advanceSeconds(5);
    await expect(authenticator.authenticate(header)).resolves.toMatchObject({ id: "alice" });
  });

  test("the keys in hand serve for 15 minutes and not longer, known tokens included", async () => {
    jwks.serve({ one: first.publicKey });
    const authenticator = await open();
    const header = signedBy(first, "one");
    await authenticator.authenticate(header);
    jwks.answerWith((response) => response.destroy());
    clock.advanceSeconds(15 * MINUTE - 1);
    expect(authenticator.authenticate(header)).toMatchObject({ id: "alice" });
    await vi.waitFor(() => expect(logger.lines.at(-1)?.message).toBe("The JWKS cannot be fetched."), 20_000);
    clock.advanceSeconds(1);
    expect(await failureOf(() => authenticator.authenticate(header))).toMatchObject({ kind: "overloaded" });
  });

  test("an answer that is no key set leaves the keys in hand", async () => {
    jwks.serve({ one: first.publicKey });
    const authenticator = await open();
    jwks.answerWith((response) => response.end("<html>Sign in</html>"));
    clock.advanceSeconds(6 * MINUTE);
    await expect(authenticator.authenticate(signedBy(first, "one"))).resolves.toMatchObject({ id: "alice" });
  });
});

describe("a hostile key server", () => {
  test("cannot redirect", async () => {
    const target = await startJwksServer();
    target.serve({ one: first.publicKey });
    jwks.answerWith((response) => response.writeHead(302, { location: target.url }).end());
    const authenticator = await open();
    expect(await failureOf(() => authenticator.authenticate(signedBy(first, "one")))).toMatchObject({
      kind: "overloaded",
    });
    expect(target.requests).toBe(0);
    await target.close();
  });

  test.each([
    ["an endless answer", `{"keys":[${" ".repeat(300 * 1024)}]}`, "longer than 262144 bytes"],
    [
      "a thousand keys",
      JSON.stringify({ keys: Array.from({ length: 1000 }, () => ({ kty: "EC" })) }),
      "at most 100 keys",
    ],
    ["a list", "[]", "not a JWKS"],
    ["null keys", '{"keys":[null]}', "malformed"],
  ])("gains nothing with %s", async (_, body, error) => {
    jwks.answerWith((response) => response.end(body));
    await open();
    expect(logger.lines).toEqual([
      expect.objectContaining({ fields: { url: jwks.url, error: expect.stringContaining(error) } }),
    ]);
  });

  test("cannot hold the server up", async () => {
    jwks.answerWith((response) => response.write('{"keys":['));
    const keys = new RemoteKeys({ url: new URL(jwks.url), ...clocks(), fetch, logger, timeoutMs: 50 });
    await keys.refresh();
    expect(logger.lines).toEqual([
      expect.objectContaining({ level: "warning", message: "The JWKS cannot be fetched." }),
    ]);
    expect(keys.isFresh()).toBe(false);
  });

  test("cannot bring in a shared secret", async () => {
    const secret = randomBytes(32);
    jwks.answerWith((response) =>
      response.end(JSON.stringify({ keys: [{ kty: "oct", kid: "s", alg: "HS256", k: secret.toString("base64url") }] })),
    );
    const authenticator = await open();
    const header = bearer({ alg: "HS256", kid: "s" }, hmac(secret));
    expect(await failureOf(() => authenticator.authenticate(header))).toMatchObject({
      facts: { reason: "token_algorithm" },
    });
  });

  test("cannot publish a private key and have it used", async () => {
    jwks.serve({ one: first.privateKey });
    const authenticator = await open();
    expect(await failureOf(() => authenticator.authenticate(signedBy(first, "one")))).toMatchObject({
      facts: { reason: "token_key_unknown" },
    });
  });
});

describe("close", () => {
  test("ends a request that is under way, silently, and may be called twice", async () => {
    const wasAsked = new Promise<void>((resolve) => jwks.answerWith(() => resolve()));
    const keys = new RemoteKeys({ url: new URL(jwks.url), ...clocks(), fetch, logger });
    const refresh = keys.refresh();
    await wasAsked;
    keys.close();
    keys.close();
    await refresh;
    await keys.refresh();
    expect(logger.lines).toEqual([]);
    expect(jwks.requests).toBe(1);
  });
});

describe("the URL", () => {
  test.each([
    "http://issuer.test/jwks",
    "http://localhost.evil.test/jwks",
    "http://127.0.0.1.evil.test/",
    "file:///etc/keys.json",
    "https://user:pass@issuer.test/jwks",
    "https://user@issuer.test/jwks",
    "https://:pass@issuer.test/jwks",
    "jwks.json",
  ])("%s is refused at start", async (jwksUrl) => {
    const failure = await failureOf(() =>
      createAuthenticator({ auth: authWith({ jwksUrl, issuer: ISSUER }), logger: SILENT_LOGGER }),
    );
    expect(failure).toMatchObject({
      kind: "internal",
      message: expect.stringContaining("auth.jwt.jwksUrl"),
      hint: expect.stringContaining("https://"),
    });
    expect(failure.message).not.toContain("pass");
  });

  test("is refused at start without the issuer whose keys it has", async () => {
    const auth = authWith({ jwksUrl: jwks.url, audience: "owlclaw" });
    const failure = await failureOf(() => createAuthenticator({ auth, logger: SILENT_LOGGER }));
    expect(failure.message).toContain("auth.jwt.issuer");
    expect(jwks.requests).toBe(0);
  });

  test("is fetched over https from anywhere", async () => {
    const asked: string[] = [];
    const recordingFetch: typeof fetch = async (url) => {
      asked.push(url instanceof URL ? url.href : "no URL");
      return new Response(JSON.stringify({ keys: [first.publicKey.export({ format: "jwk" })] }));
    };
    const auth = authWith({ jwksUrl: "https://issuer.test/jwks", audience: "owlclaw", issuer: ISSUER });
    const authenticator = await createAuthenticator({ auth, ...clocks(), fetch: recordingFetch, logger });
    await expect(authenticator.authenticate(bearer({ alg: "ES256" }, ecdsa(first.privateKey)))).resolves.toMatchObject({
      id: "alice",
    });
    expect(asked).toEqual(["https://issuer.test/jwks"]);
  });
});
