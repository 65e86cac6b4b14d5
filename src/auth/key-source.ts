import { createPublicKey, type KeyObject, subtle, X509Certificate } from "node:crypto";
import { OwlError } from "../errors/owl-error.ts";
import { refuseToken } from "./bearer-token.ts";
import type { CryptoKey, JWSHeaderParameters } from "jose";

const HMAC_HASHES = { HS256: "SHA-256", HS384: "SHA-384", HS512: "SHA-512" } as const;
/** RFC 7518: a key as long as the hash. A shorter secret can be guessed offline with one token. */
const MIN_SECRET_BYTES = 32;
const MIN_RSA_BITS = 2048;
const RSA_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
const CURVE_ALGORITHMS: ReadonlyMap<string, string> = new Map([
  ["prime256v1", "ES256"],
  ["secp384r1", "ES384"],
  ["secp521r1", "ES512"],
]);

/** The keys that may verify a token. */
export interface KeySource {
  /** The accepted algorithms. They follow from the keys, never from the token. */
  readonly algorithms: readonly string[];
  /** Increases when the keys change: tokens that an older generation verified must be verified again. */
  readonly generation: number;
  /** False when the keys are too old or were not fetched yet. `keyFor` then fetches them first. */
  isFresh(): boolean;
  /** Throws `unauthorized` when no key matches the header, `overloaded` when the keys cannot be fetched. */
  keyFor(header: JWSHeaderParameters): Promise<CryptoKey | KeyObject>;
  close(): void;
}

/** Keys for HS256, HS384 and HS512 from one shared secret. */
export async function secretKeys(secret: string): Promise<KeySource> {
  if (secret.includes("-----BEGIN ")) {
    throw wrongKey(
      "auth.jwt.secret holds a PEM key, which others may know.",
      "Put a public key into auth.jwt.publicKey.",
    );
  }
  const bytes = Buffer.from(secret, "utf8");
  if (bytes.length < MIN_SECRET_BYTES) {
    throw wrongKey(
      `auth.jwt.secret is shorter than ${MIN_SECRET_BYTES} bytes.`,
      "Use at least 32 random bytes, for example from: openssl rand -base64 48",
    );
  }
  const keys = new Map<string, Awaited<ReturnType<typeof subtle.importKey>>>();
  for (const [algorithm, hash] of Object.entries(HMAC_HASHES)) {
    // Imported once per hash: importing it for each token would double the cost of a verification.
    keys.set(algorithm, await subtle.importKey("raw", bytes, { name: "HMAC", hash }, false, ["verify"]));
  }
  return fixedKeys([...keys.keys()], (algorithm) => keys.get(algorithm));
}

/** One public key from a PEM (SPKI) or an X.509 certificate. The key's type determines the algorithms. */
export function publicKeys(pem: string): KeySource {
  const key = readPublicKey(pem);
  return fixedKeys(algorithmsOf(key), () => key);
}

type Key = Awaited<ReturnType<KeySource["keyFor"]>>;

function fixedKeys(algorithms: readonly string[], find: (algorithm: string) => Key | undefined): KeySource {
  return {
    algorithms,
    generation: 0,
    isFresh: () => true,
    keyFor: async ({ alg = "" }) => {
      const key = find(alg);
      if (key === undefined) throw refuseToken("token_algorithm", "The token's algorithm is not accepted.");
      return key;
    },
    close: () => {},
  };
}

function readPublicKey(value: string): KeyObject {
  // Environment variables and one-line YAML often contain line breaks as the two characters \n.
  const pem = value.replaceAll("\\n", "\n").trim();
  const labels = [...pem.matchAll(/-----BEGIN ([A-Z0-9 ]+)-----/g)].map(([, label]) => label ?? "");
  const fix = "Use one PEM block: BEGIN PUBLIC KEY or BEGIN CERTIFICATE.";
  const [label] = labels;
  if (label === undefined || labels.length > 1) throw wrongKey("auth.jwt.publicKey is not exactly one PEM block.", fix);
  // Node would derive the public key; a private key must not be in the configuration at all.
  if (label.includes("PRIVATE")) throw wrongKey("auth.jwt.publicKey holds a private key.", fix);
  try {
    return label === "CERTIFICATE" ? new X509Certificate(pem).publicKey : createPublicKey(pem);
  } catch (cause) {
    throw wrongKey(`auth.jwt.publicKey cannot be read as ${label}.`, fix, cause);
  }
}

function algorithmsOf(key: KeyObject): readonly string[] {
  const { modulusLength = 0, namedCurve = "" } = key.asymmetricKeyDetails ?? {};
  const fix = "Use an RSA key of at least 2048 bits, an EC key on P-256, P-384 or P-521, or an Ed25519 key.";
  switch (key.asymmetricKeyType) {
    case "rsa":
      if (modulusLength >= MIN_RSA_BITS) return RSA_ALGORITHMS;
      throw wrongKey(`auth.jwt.publicKey is an RSA key of ${modulusLength} bits.`, fix);
    case "ec": {
      const algorithm = CURVE_ALGORITHMS.get(namedCurve);
      if (algorithm !== undefined) return [algorithm];
      throw wrongKey(`auth.jwt.publicKey is on the curve ${namedCurve}.`, fix);
    }
    case "ed25519":
      return ["EdDSA", "Ed25519"];
    default:
      throw wrongKey(`auth.jwt.publicKey is a key of type ${key.asymmetricKeyType}.`, fix);
  }
}

function wrongKey(message: string, hint: string, cause?: unknown): OwlError {
  return new OwlError("internal", message, { hint, retryable: false, ...(cause === undefined ? {} : { cause }) });
}
