import type { AuthConfig } from "../../src/auth/authenticator.ts";
import type { TokenRefusal } from "../../src/auth/bearer-token.ts";
import {
  ecdsa,
  ecdsaDer,
  encode,
  fixedSignature,
  forgeToken,
  goodClaims,
  hmac,
  rsa,
  type TokenKeys,
} from "./forge-token.ts";

/** How the server under attack verifies: with an RSA public key, an EC public key (P-256), or a shared secret. */
export type AttackedServer = "rsa" | "ec" | "secret";

export interface TokenAttack {
  readonly name: string;
  readonly server: AttackedServer;
  /** What `error.data.reason` must say: an attack that fails for another reason proves nothing. */
  readonly reason: TokenRefusal;
  /** Goes behind `Bearer ` in the Authorization header. */
  readonly token: (keys: TokenKeys) => Promise<string>;
}

export function attackedServerAuth(server: AttackedServer, keys: TokenKeys): AuthConfig {
  const { issuer, audience } = keys;
  const none = { secret: "", publicKey: "", jwksUrl: "", issuer, audience };
  const keysOf: Record<AttackedServer, AuthConfig["jwt"]> = {
    rsa: { ...none, publicKey: keys.rsaPublicPem },
    ec: { ...none, publicKey: keys.ecPublicPem },
    secret: { ...none, secret: keys.secret },
  };
  return { enabled: true, jwt: keysOf[server] };
}

/** The token that each attack bends in one place. The servers accept it as `alice`. */
export function goodToken(server: AttackedServer, keys: TokenKeys, claims: object = goodClaims(keys)): string {
  if (server === "rsa") return forgeToken({ header: { alg: "RS256" }, payload: claims, signer: rsa(keys.rsaPrivate) });
  if (server === "ec") return forgeToken({ header: { alg: "ES256" }, payload: claims, signer: ecdsa(keys.ecPrivate) });
  return forgeToken({ header: { alg: "HS256" }, payload: claims, signer: hmac(keys.secret) });
}

type Forge = (keys: TokenKeys) => string;

function attack(name: string, server: AttackedServer, reason: TokenRefusal, forge: Forge): TokenAttack {
  return { name, server, reason, token: async (keys) => forge(keys) };
}

/** Signed by the trusted key, with some claims changed: what a careless or hostile issuer could send. */
function claims(name: string, reason: TokenRefusal, change: object | ((keys: TokenKeys) => object)): TokenAttack {
  return attack(name, "rsa", reason, (keys) => {
    const changed = typeof change === "function" ? change(keys) : change;
    return goodToken("rsa", keys, { ...goodClaims(keys), ...changed });
  });
}

/** Signed by the trusted key, with another header. */
function header(name: string, reason: TokenRefusal, value: object | string): TokenAttack {
  return attack(name, "rsa", reason, (keys) =>
    forgeToken({ header: value, payload: goodClaims(keys), signer: rsa(keys.rsaPrivate) }),
  );
}

/** Signed by the attacker, with a header that offers the attacker's key. */
function offeredKey(name: string, offer: (keys: TokenKeys) => object): TokenAttack {
  return attack(name, "rsa", "token_signature", (keys) =>
    forgeToken({
      header: { alg: "RS256", ...offer(keys) },
      payload: goodClaims(keys),
      signer: rsa(keys.attackerRsa.privateKey),
    }),
  );
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000);
const noSignature = fixedSignature(Buffer.alloc(0));
const derOf = (keys: TokenKeys): Buffer => keys.attackerRsa.publicKey.export({ type: "spki", format: "der" });

/** Puts one part of a good token through `change`. */
function bend(index: 0 | 1 | 2, change: (part: string, keys: TokenKeys) => string): Forge {
  return (keys) =>
    goodToken("rsa", keys)
      .split(".")
      .map((part, at) => (at === index ? change(part, keys) : part))
      .join(".");
}

const algorithmAttacks: readonly TokenAttack[] = [
  attack("alg none without a signature", "rsa", "token_malformed", (keys) =>
    forgeToken({ header: { alg: "none" }, payload: goodClaims(keys), signer: noSignature }),
  ),
  attack("alg none that keeps a real signature", "rsa", "token_algorithm", (keys) =>
    forgeToken({ header: { alg: "none" }, payload: goodClaims(keys), signer: rsa(keys.rsaPrivate) }),
  ),
  attack("alg nOnE against a secret", "secret", "token_algorithm", (keys) =>
    forgeToken({ header: { alg: "nOnE" }, payload: goodClaims(keys), signer: hmac(keys.secret) }),
  ),
  header("no alg at all", "token_malformed", { typ: "JWT" }),
  header("alg as a list", "token_malformed", { alg: ["RS256"] }),
  header("alg toString", "token_algorithm", { alg: "toString" }),
  attack("the RSA public key (PEM) as HMAC secret", "rsa", "token_algorithm", (keys) =>
    forgeToken({ header: { alg: "HS256" }, payload: goodClaims(keys), signer: hmac(keys.rsaPublicPem) }),
  ),
  attack("the RSA public key (PEM, trimmed) as HMAC secret with HS512", "rsa", "token_algorithm", (keys) =>
    forgeToken({ header: { alg: "HS512" }, payload: goodClaims(keys), signer: hmac(keys.rsaPublicPem.trim(), 512) }),
  ),
  attack("the RSA public key (DER) as HMAC secret", "rsa", "token_algorithm", (keys) => {
    const der = keys.rsaPublic.export({ type: "spki", format: "der" });
    return forgeToken({ header: { alg: "HS256" }, payload: goodClaims(keys), signer: hmac(der) });
  }),
  attack("the EC public key (PEM) as HMAC secret", "ec", "token_algorithm", (keys) =>
    forgeToken({ header: { alg: "HS256" }, payload: goodClaims(keys), signer: hmac(keys.ecPublicPem) }),
  ),
  attack("an attacker's RS256 token against a secret", "secret", "token_algorithm", (keys) =>
    forgeToken({ header: { alg: "RS256" }, payload: goodClaims(keys), signer: rsa(keys.attackerRsa.privateKey) }),
  ),
  attack("an attacker's ES256 token against an RSA key", "rsa", "token_algorithm", (keys) =>
    forgeToken({ header: { alg: "ES256" }, payload: goodClaims(keys), signer: ecdsa(keys.attackerEc.privateKey) }),
  ),
  attack("an RS256 signature that claims to be PS256", "rsa", "token_signature", (keys) =>
    forgeToken({ header: { alg: "PS256" }, payload: goodClaims(keys), signer: rsa(keys.rsaPrivate) }),
  ),
  attack("ES384 with a P-256 key", "ec", "token_algorithm", (keys) =>
    forgeToken({ header: { alg: "ES384" }, payload: goodClaims(keys), signer: ecdsa(keys.ecPrivate, 384) }),
  ),
];

const signatureAttacks: readonly TokenAttack[] = [
  attack("signed with another RSA key", "rsa", "token_signature", (keys) =>
    forgeToken({ header: { alg: "RS256" }, payload: goodClaims(keys), signer: rsa(keys.attackerRsa.privateKey) }),
  ),
  attack("signed with another EC key", "ec", "token_signature", (keys) =>
    forgeToken({ header: { alg: "ES256" }, payload: goodClaims(keys), signer: ecdsa(keys.attackerEc.privateKey) }),
  ),
  attack("signed with an empty secret", "secret", "token_signature", (keys) =>
    forgeToken({ header: { alg: "HS256" }, payload: goodClaims(keys), signer: hmac("") }),
  ),
  attack("signed with the secret that tutorials use", "secret", "token_signature", (keys) =>
    forgeToken({ header: { alg: "HS256" }, payload: goodClaims(keys), signer: hmac("your-256-bit-secret") }),
  ),
  attack("an ECDSA signature of zeros", "ec", "token_signature", (keys) =>
    forgeToken({ header: { alg: "ES256" }, payload: goodClaims(keys), signer: fixedSignature(Buffer.alloc(64)) }),
  ),
  attack("an ECDSA signature in DER", "ec", "token_signature", (keys) =>
    forgeToken({ header: { alg: "ES256" }, payload: goodClaims(keys), signer: ecdsaDer(keys.ecPrivate) }),
  ),
  attack("an HMAC cut to eight bytes", "secret", "token_signature", (keys) =>
    forgeToken({
      header: { alg: "HS256" },
      payload: goodClaims(keys),
      signer: (input) => hmac(keys.secret)(input).subarray(0, 8),
    }),
  ),
  attack(
    "claims changed after signing",
    "rsa",
    "token_signature",
    bend(1, (_, keys) => encode({ ...goodClaims(keys), sub: "root" })),
  ),
  attack(
    "scope added after signing",
    "rsa",
    "token_signature",
    bend(1, (_, keys) => encode({ ...goodClaims(keys), scope: "owlclaw:admin" })),
  ),
  attack(
    "header changed after signing",
    "rsa",
    "token_signature",
    bend(0, () => encode({ alg: "RS256", kid: "1" })),
  ),
  attack("the signature of another token", "rsa", "token_signature", (keys) => {
    const other = goodToken("rsa", keys, { ...goodClaims(keys), sub: "mallory" });
    return bend(2, () => other.split(".")[2] ?? "")(keys);
  }),
  attack(
    "one bit of the signature flipped",
    "rsa",
    "token_signature",
    bend(2, (part) => (part.startsWith("A") ? `B${part.slice(1)}` : `A${part.slice(1)}`)),
  ),
  offeredKey("the attacker's key in a jwk header", (keys) => ({
    jwk: keys.attackerRsa.publicKey.export({ format: "jwk" }),
  })),
  offeredKey("the attacker's key set in a jku header", () => ({ jku: "http://127.0.0.1:9/jwks.json" })),
  offeredKey("the attacker's certificate in an x5c header", (keys) => ({ x5c: [derOf(keys).toString("base64")] })),
  offeredKey("the attacker's certificate in an x5u header", () => ({ x5u: "http://127.0.0.1:9/cert.pem" })),
  attack("a kid that names an empty file", "secret", "token_signature", (keys) =>
    forgeToken({ header: { alg: "HS256", kid: "../../../../dev/null" }, payload: goodClaims(keys), signer: hmac("") }),
  ),
  attack("a kid that injects SQL", "secret", "token_signature", (keys) =>
    forgeToken({
      header: { alg: "HS256", kid: "x' UNION SELECT 'key" },
      payload: goodClaims(keys),
      signer: hmac("key"),
    }),
  ),
];

const timeAttacks: readonly TokenAttack[] = [
  claims("no exp", "token_claims", { exp: undefined }),
  claims("expired an hour ago", "token_expired", () => ({ exp: nowSeconds() - 3600 })),
  claims("expired just outside the clock skew", "token_expired", () => ({ exp: nowSeconds() - 31 })),
  claims("exp of zero", "token_expired", { exp: 0 }),
  claims("exp as a string", "token_claims", () => ({ exp: String(nowSeconds() + 600) })),
  claims("exp null", "token_claims", { exp: null }),
  claims("exp in milliseconds", "token_claims", () => ({ exp: (nowSeconds() + 600) * 1000 })),
  attack("exp 1e999, which parses as infinity", "rsa", "token_claims", (keys) => {
    const payload = JSON.stringify(goodClaims(keys)).replace(/"exp":\d+/, '"exp":1e999');
    return forgeToken({ header: { alg: "RS256" }, payload, signer: rsa(keys.rsaPrivate) });
  }),
  claims("nbf in the future", "token_not_yet_valid", () => ({ nbf: nowSeconds() + 300 })),
  claims("nbf as an object", "token_claims", { nbf: {} }),
  claims("iat in the future", "token_not_yet_valid", () => ({ iat: nowSeconds() + 300 })),
];

const claimAttacks: readonly TokenAttack[] = [
  claims("another issuer", "token_issuer", { iss: "https://evil.test" }),
  claims("no issuer", "token_issuer", { iss: undefined }),
  claims("an issuer that begins like ours", "token_issuer", (keys) => ({ iss: `${keys.issuer}.evil.test` })),
  claims("a list of issuers with ours in it", "token_issuer", (keys) => ({ iss: [keys.issuer] })),
  claims("another audience", "token_audience", { aud: "billing" }),
  claims("no audience", "token_audience", { aud: undefined }),
  claims("an audience that contains ours", "token_audience", (keys) => ({ aud: `${keys.audience}-staging` })),
  claims("an audience as an object", "token_audience", (keys) => ({ aud: { [keys.audience]: true } })),
  claims("nobody: neither sub nor client_id", "token_claims", { sub: undefined }),
  claims("sub anonymous", "token_claims", { sub: "anonymous" }),
  claims("sub Anonymous, in other letters", "token_claims", { sub: "Anonymous" }),
  claims("client_id anonymous", "token_claims", { sub: undefined, client_id: "anonymous" }),
  claims("sub stdio", "token_claims", { sub: "stdio" }),
  claims("sub __proto__", "token_claims", { sub: "__proto__" }),
  claims("an empty sub with a client_id behind it", "token_claims", { sub: "", client_id: "alice" }),
  claims("a numeric sub", "token_claims", { sub: 0 }),
  claims("a list as sub", "token_claims", { sub: ["alice"] }),
  claims("a sub of 257 characters", "token_claims", { sub: "a".repeat(257) }),
  claims("a line break in sub", "token_claims", { sub: "alice\nadmin" }),
  claims("a NUL in sub", "token_claims", { sub: "alice\u0000" }),
  claims("a right-to-left override in sub", "token_claims", { sub: "alice\u202Enimda" }),
  claims("a zero-width space in sub", "token_claims", { sub: "ali\u200Bce" }),
  claims("a lone surrogate in sub", "token_claims", { sub: "alice\uD800" }),
  claims("a space behind sub", "token_claims", { sub: "alice " }),
  claims("scope as a list", "token_claims", { scope: ["owlclaw:admin"] }),
  claims("scp with two scopes in one entry", "token_claims", { scp: ["read owlclaw:admin"] }),
  claims("scp as an object", "token_claims", { scp: { "owlclaw:admin": true } }),
  claims("a token bound to a DPoP key, sent as bearer", "token_sender_constrained", { cnf: { jkt: "x" } }),
];

const shapeAttacks: readonly TokenAttack[] = [
  header("an unknown critical header", "token_malformed", { alg: "RS256", crit: ["exp"], exp: 1 }),
  header("an unencoded payload (b64 false)", "token_malformed", { alg: "RS256", crit: ["b64"], b64: false }),
  header("an empty crit", "token_malformed", { alg: "RS256", crit: [] }),
  header("a logout token", "token_malformed", { alg: "RS256", typ: "logout+jwt" }),
  header("a DPoP proof", "token_malformed", { alg: "RS256", typ: "dpop+jwt" }),
  header("typ as a list", "token_malformed", { alg: "RS256", typ: ["JWT"] }),
  header("alg twice in the header", "token_malformed", '{"alg":"none","alg":"RS256"}'),
  header("a header that is a list", "token_malformed", "[]"),
  header("a header that is no JSON", "token_malformed", "alg=RS256"),
  attack("sub twice", "rsa", "token_malformed", (keys) => {
    const payload = JSON.stringify(goodClaims(keys)).replace("{", '{"sub":"mallory",');
    return forgeToken({ header: { alg: "RS256" }, payload, signer: rsa(keys.rsaPrivate) });
  }),
  attack("sub twice, once escaped", "rsa", "token_malformed", (keys) => {
    const payload = JSON.stringify(goodClaims(keys)).replace("{", String.raw`{"s\u0075b":"mallory",`);
    return forgeToken({ header: { alg: "RS256" }, payload, signer: rsa(keys.rsaPrivate) });
  }),
  attack("claims that are a list", "rsa", "token_malformed", (keys) => goodToken("rsa", keys, [goodClaims(keys)])),
  attack("claims that are no JSON", "rsa", "token_malformed", (keys) =>
    forgeToken({ header: { alg: "RS256" }, payload: "sub=alice", signer: rsa(keys.rsaPrivate) }),
  ),
  attack("claims in invalid UTF-8", "rsa", "token_malformed", (keys) => {
    const payload = Buffer.from(JSON.stringify({ ...goodClaims(keys), sub: "ali\u00ffce" }), "latin1");
    return forgeToken({ header: { alg: "RS256" }, payload, signer: rsa(keys.rsaPrivate) });
  }),
  attack("an encrypted token (five parts)", "rsa", "token_malformed", (keys) => `${goodToken("rsa", keys)}.AAAA.AAAA`),
  attack("two parts", "rsa", "token_malformed", (keys) => goodToken("rsa", keys).split(".").slice(0, 2).join(".")),
  attack("dots only", "rsa", "token_malformed", () => ".."),
  attack("padding behind the signature", "rsa", "token_malformed", (keys) => `${goodToken("rsa", keys)}==`),
  // 256 bytes leave four unused bits in the last character of a signature.
  attack(
    "a second spelling of the same signature",
    "rsa",
    "token_malformed",
    bend(2, (part) => part.slice(0, -1) + nextCharacter(part.at(-1))),
  ),
  attack(
    "two tokens in one header",
    "rsa",
    "token_malformed",
    (keys) => `${goodToken("rsa", keys)}, ${goodToken("rsa", keys)}`,
  ),
  attack(
    "two tokens with a space between",
    "rsa",
    "token_malformed",
    (keys) => `${goodToken("rsa", keys)} ${goodToken("rsa", keys)}`,
  ),
  attack("the JSON serialization of a JWS", "rsa", "token_malformed", (keys) => {
    const [protectedHeader, payload, signature] = goodToken("rsa", keys).split(".");
    return JSON.stringify({ protected: protectedHeader, payload, signature });
  }),
  claims("nine kilobytes of claims, well signed", "token_too_large", { padding: "x".repeat(9 * 1024) }),
];

function nextCharacter(character = ""): string {
  return String.fromCharCode(character.charCodeAt(0) + 1);
}

/** Each is refused with 401 by the server it is meant for. */
export const tokenAttacks: readonly TokenAttack[] = [
  ...algorithmAttacks,
  ...signatureAttacks,
  ...timeAttacks,
  ...claimAttacks,
  ...shapeAttacks,
];
