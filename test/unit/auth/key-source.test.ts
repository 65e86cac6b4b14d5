import { generateKeyPairSync, randomBytes, type KeyObject } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createAuthenticator, type Authenticator } from "../../../src/auth/authenticator.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { ecdsa, eddsa, forgeToken, hmac, rsa, rsaPss, spkiPem, type Signer } from "../../escape/forge-token.ts";
import { authWith, failureOf } from "./auth-fixture.ts";
import { selfSignedCertificatePem } from "./self-signed-certificate.ts";

const rsaKeys = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ecKeys = {
  "P-256": generateKeyPairSync("ec", { namedCurve: "P-256" }),
  "P-384": generateKeyPairSync("ec", { namedCurve: "P-384" }),
  "P-521": generateKeyPairSync("ec", { namedCurve: "P-521" }),
};
const edKeys = generateKeyPairSync("ed25519");
const secret = randomBytes(64).toString("base64");

async function openWith(jwt: Parameters<typeof authWith>[0]): Promise<Authenticator> {
  return createAuthenticator({ auth: authWith(jwt), logger: SILENT_LOGGER });
}

function signed(alg: string, signer: Signer): string {
  return `Bearer ${forgeToken({ header: { alg }, payload: { sub: "alice", exp: Math.floor(Date.now() / 1000) + 60 }, signer })}`;
}

const SIGNERS: Record<string, Signer> = {
  HS256: hmac(secret, 256),
  HS384: hmac(secret, 384),
  HS512: hmac(secret, 512),
  RS256: rsa(rsaKeys.privateKey, 256),
  RS384: rsa(rsaKeys.privateKey, 384),
  RS512: rsa(rsaKeys.privateKey, 512),
  PS256: rsaPss(rsaKeys.privateKey, 256),
  PS384: rsaPss(rsaKeys.privateKey, 384),
  PS512: rsaPss(rsaKeys.privateKey, 512),
  ES256: ecdsa(ecKeys["P-256"].privateKey, 256),
  ES384: ecdsa(ecKeys["P-384"].privateKey, 384),
  ES512: ecdsa(ecKeys["P-521"].privateKey, 512),
  EdDSA: eddsa(edKeys.privateKey),
  Ed25519: eddsa(edKeys.privateKey),
};

const SERVERS: Record<string, { jwt: Parameters<typeof authWith>[0]; accepts: string[] }> = {
  "a secret": { jwt: { secret }, accepts: ["HS256", "HS384", "HS512"] },
  "an RSA key": {
    jwt: { publicKey: spkiPem(rsaKeys.publicKey) },
    accepts: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  },
  "a P-256 key": { jwt: { publicKey: spkiPem(ecKeys["P-256"].publicKey) }, accepts: ["ES256"] },
  "a P-384 key": { jwt: { publicKey: spkiPem(ecKeys["P-384"].publicKey) }, accepts: ["ES384"] },
  "a P-521 key": { jwt: { publicKey: spkiPem(ecKeys["P-521"].publicKey) }, accepts: ["ES512"] },
  "an Ed25519 key": { jwt: { publicKey: spkiPem(edKeys.publicKey) }, accepts: ["EdDSA", "Ed25519"] },
};

describe("the key fixes the algorithms", () => {
  test.each(Object.entries(SERVERS))("%s verifies its own algorithms and no other", async (_, { jwt, accepts }) => {
    const authenticator = await openWith(jwt);
    const accepted: string[] = [];
    for (const [alg, signer] of Object.entries(SIGNERS)) {
      const header = signed(alg, signer);
      const principal = await Promise.resolve(header)
        .then((value) => authenticator.authenticate(value))
        .catch(() => undefined);
      if (principal?.id === "alice") accepted.push(alg);
    }
    expect(accepted).toEqual(accepts);
  });
});

describe("a public key", () => {
  test("may be an X.509 certificate", async () => {
    const authenticator = await openWith({ publicKey: selfSignedCertificatePem(ecKeys["P-256"]) });
    await expect(authenticator.authenticate(signed("ES256", ecdsa(ecKeys["P-256"].privateKey)))).resolves.toMatchObject(
      { id: "alice" },
    );
  });

  test("may have its line breaks written as \\n, as in an environment variable", async () => {
    const authenticator = await openWith({ publicKey: spkiPem(rsaKeys.publicKey).replaceAll("\n", "\\n") });
    await expect(authenticator.authenticate(signed("RS256", rsa(rsaKeys.privateKey)))).resolves.toMatchObject({
      id: "alice",
    });
  });
});

describe("at start, refuses", () => {
  const privatePem = pkcs8(rsaKeys.privateKey);
  test.each([
    ["a private key where a public one belongs", { publicKey: privatePem }, "holds a private key"],
    [
      "two keys in one value",
      { publicKey: spkiPem(rsaKeys.publicKey) + spkiPem(edKeys.publicKey) },
      "exactly one PEM block",
    ],
    ["text that is no PEM", { publicKey: "ssh-rsa AAAA" }, "exactly one PEM block"],
    [
      "a broken PEM",
      { publicKey: "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----" },
      "cannot be read as PUBLIC KEY",
    ],
    [
      "a broken certificate",
      { publicKey: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" },
      "cannot be read as CERTIFICATE",
    ],
    [
      "an RSA key of 1024 bits",
      { publicKey: spkiPem(generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey) },
      "1024 bits",
    ],
    [
      "an unusual curve",
      { publicKey: spkiPem(generateKeyPairSync("ec", { namedCurve: "secp256k1" }).publicKey) },
      "secp256k1",
    ],
    ["a key that cannot sign", { publicKey: spkiPem(generateKeyPairSync("x25519").publicKey) }, "x25519"],
    ["a secret of 31 bytes", { secret: "s".repeat(31) }, "shorter than 32 bytes"],
    ["a public key as secret", { secret: spkiPem(rsaKeys.publicKey) }, "holds a PEM key"],
  ])("%s", async (_, jwt, message) => {
    const failure = await failureOf(() => openWith(jwt));
    expect(failure).toMatchObject({ kind: "internal", retryable: false, message: expect.stringContaining(message) });
    expect(failure.hint).toMatch(/^(Use|Put) /);
  });
});

function pkcs8(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}
