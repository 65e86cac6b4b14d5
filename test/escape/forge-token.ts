import { constants, createHmac, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";

/** What a server under attack trusts (secret, RSA, EC), and what an attacker has. */
export interface TokenKeys {
  readonly secret: string;
  readonly rsaPrivate: KeyObject;
  readonly rsaPublicPem: string;
  readonly rsaPublic: KeyObject;
  readonly ecPrivate: KeyObject;
  readonly ecPublicPem: string;
  readonly attackerRsa: { readonly privateKey: KeyObject; readonly publicKey: KeyObject };
  readonly attackerEc: { readonly privateKey: KeyObject; readonly publicKey: KeyObject };
  readonly issuer: string;
  readonly audience: string;
}

export function createTokenKeys(): TokenKeys {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    secret: randomBytes(48).toString("base64"),
    rsaPrivate: rsa.privateKey,
    rsaPublic: rsa.publicKey,
    rsaPublicPem: spkiPem(rsa.publicKey),
    ecPrivate: ec.privateKey,
    ecPublicPem: spkiPem(ec.publicKey),
    attackerRsa: generateKeyPairSync("rsa", { modulusLength: 2048 }),
    attackerEc: generateKeyPairSync("ec", { namedCurve: "P-256" }),
    issuer: "https://issuer.test",
    audience: "owlclaw",
  };
}

export function spkiPem(key: KeyObject): string {
  return key.export({ type: "spki", format: "pem" }).toString();
}

/** Claims that the servers of these keys accept. */
export function goodClaims(keys: TokenKeys): Record<string, unknown> {
  const nowSeconds = Math.floor(Date.now() / 1000);
  return { sub: "alice", iss: keys.issuer, aud: keys.audience, iat: nowSeconds, exp: nowSeconds + 600 };
}

export type Signer = (input: string) => Buffer;

export interface TokenParts {
  /** An object, or the exact text where it matters. */
  readonly header: object | string;
  readonly payload: object | string | Buffer;
  readonly signer: Signer;
}

/** Builds a compact JWS out of anything, as an attacker would: no library stands in the way. */
export function forgeToken({ header, payload, signer }: TokenParts): string {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${signer(input).toString("base64url")}`;
}

export function encode(part: object | string | Buffer): string {
  if (Buffer.isBuffer(part)) return part.toString("base64url");
  return Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url");
}

export function hmac(secret: string | Buffer, bits: 256 | 384 | 512 = 256): Signer {
  return (input) => createHmac(`sha${bits}`, secret).update(input).digest();
}

export function rsa(key: KeyObject, bits: 256 | 384 | 512 = 256): Signer {
  return (input) => sign(`sha${bits}`, Buffer.from(input), key);
}

export function rsaPss(key: KeyObject, bits: 256 | 384 | 512 = 256): Signer {
  return (input) =>
    sign(`sha${bits}`, Buffer.from(input), { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: bits / 8 });
}

export function ecdsa(key: KeyObject, bits: 256 | 384 | 512 = 256): Signer {
  return (input) => sign(`sha${bits}`, Buffer.from(input), { key, dsaEncoding: "ieee-p1363" });
}

export function ecdsaDer(key: KeyObject): Signer {
  return (input) => sign("sha256", Buffer.from(input), key);
}

export function eddsa(key: KeyObject): Signer {
  return (input) => sign(null, Buffer.from(input), key);
}

export function fixedSignature(signature: Buffer): Signer {
  return () => signature;
}
