import {
  createHash,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OwlError } from "../../errors/owl-error.ts";

/** The keys that link the chain and sign its heads. */
export interface LedgerKeys {
  readonly chainKey: KeyObject;
  /** Identifies the chain key without revealing it. */
  readonly chainKeyId: string;
  readonly signingKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly signingKeyId: string;
}

const CHAIN_FILE = "ledger-chain.key";
const SIGNING_FILE = "ledger-signing.pem";
/** For auditors: verifies signatures, and cannot make any. */
const PUBLIC_FILE = "ledger-signing.pub.pem";

export interface KeyOptions {
  readonly folder: string;
  /** Whether missing keys are created. Never for a ledger that has rows: new keys would not match them. */
  readonly create: boolean;
}

/** Reads the keys. When several processes start at the same time, one of them creates the keys and all use these. */
export function loadLedgerKeys({ folder, create }: KeyOptions): LedgerKeys {
  if (create) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const chain = readOrMake(join(folder, CHAIN_FILE), create, () => `${randomBytes(32).toString("hex")}\n`);
  const pem = readOrMake(join(folder, SIGNING_FILE), create, makeSigningKey);
  if (!/^[0-9a-f]{64}\s*$/.test(chain)) throw unusable(join(folder, CHAIN_FILE), "it is not 64 hexadecimal digits");
  const chainKey = Buffer.from(chain.trim(), "hex");
  const signingKey = readSigningKey(join(folder, SIGNING_FILE), pem);
  const publicKey = createPublicKey(signingKey);
  const publicPem = publicKey.export({ type: "spki", format: "pem" }).toString();
  if (create) readOrMake(join(folder, PUBLIC_FILE), true, () => publicPem);
  return {
    chainKey: createSecretKey(chainKey),
    chainKeyId: fingerprint("owlclaw-ledger-chain-key", chainKey),
    signingKey,
    publicKey,
    signingKeyId: fingerprint("owlclaw-ledger-signing-key", Buffer.from(publicPem)),
  };
}

function makeSigningKey(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function readSigningKey(path: string, pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // Reported below: the parser's own message may quote the key.
  }
  throw unusable(path, "it is no Ed25519 private key in PEM");
}

function readOrMake(path: string, create: boolean, make: () => string): string {
  if (!existsSync(path)) {
    if (!create) throw unusable(path, "it is not there");
    makeOnce(path, make());
  }
  // The public key is not secret.
  if (!path.endsWith(PUBLIC_FILE) && (statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
  return readFileSync(path, "utf8");
}

/** A hard link fails when the name exists, so that the file is never seen half written and never replaced. */
function makeOnce(path: string, text: string): void {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  writeFileSync(draft, text, { mode: 0o600, flag: "wx", flush: true });
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(draft);
  }
}

function fingerprint(purpose: string, key: Buffer): string {
  return createHash("sha256").update(`${purpose}\n`).update(key).digest("hex").slice(0, 16);
}

function unusable(path: string, reason: string): OwlError {
  return new OwlError("store_unavailable", `the ledger's key ${path} cannot be used: ${reason}`, {
    hint: "Put the key back from a backup. Without it, rows can neither be added nor verified.",
    retryable: false,
  });
}
