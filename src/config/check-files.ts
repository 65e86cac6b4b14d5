import { createPrivateKey, createPublicKey, X509Certificate, type KeyObject } from "node:crypto";
import { readdirSync, readFileSync, lstatSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Origin } from "./candidate.ts";
import type { ConfigIssue } from "./config-error.ts";
import { showValue } from "./mask.ts";
import { isPem } from "./resolve-paths.ts";
import type { Config } from "./schema.ts";
import { isVolumeProblem, type PlannedVolume, planVolume } from "./plan-volumes.ts";
import { checkTemplate, templatesWithImage } from "./template-name.ts";
import { trustedPaths, type TrustSurroundings } from "./trusted-files.ts";
import { checkVolume, parseVolume } from "./volume.ts";

export interface FileContext extends TrustSurroundings {
  readonly dataFolder: string;
  /** The folder with the record of trusted configuration files of this user. */
  readonly trustFolder: string;
  readonly originOf: (path: string) => Origin;
}

export interface FileVerdict {
  readonly issues: readonly ConfigIssue[];
  /** `auth.jwt.publicKey` as SPKI PEM text, whether it was set as text or as a path. Empty when it is not set. */
  readonly publicKeyPem: string;
  readonly volumes: readonly PlannedVolume[];
}

/** Runs `read`. When it throws, records an issue and returns undefined. */
type Attempt = <T>(path: string, value: string, how: { readonly read: () => T; readonly fix: string }) => T | undefined;

/** Reads the files that the configuration names, so that an invalid file fails the start and not the first call. */
export function checkFiles(context: FileContext): FileVerdict {
  const { config, dataFolder, originOf } = context;
  const issues: ConfigIssue[] = [];
  const attempt: Attempt = (path, value, { read, fix }) => {
    try {
      return read();
    } catch (error) {
      issues.push({ path, value: showValue(path, value), reason: reasonOf(error), fix, ...originOf(path) });
      return undefined;
    }
  };
  attempt("sandbox.root", dataFolder, {
    read: () => assertOwnFolder(dataFolder),
    fix: "choose another folder with SANDBOX_ROOT, or find out who made this one and give it to the server's user with chown",
  });
  const { publicKey } = config.auth.jwt;
  const publicKeyPem = attempt("auth.jwt.publicKey", publicKey, {
    read: () => (publicKey === "" ? "" : toSpkiPem(publicKey)),
    fix: "give PEM text that starts with -----BEGIN PUBLIC KEY-----, or the path of a readable file with it",
  });
  checkTls(config, attempt);
  const { dir } = config.skills;
  if (dir !== "") {
    attempt("skills.dir", dir, {
      read: () => readdirSync(dir),
      fix: "give the path of a readable folder that holds category/name/SKILL.md",
    });
  }
  const withImage = templatesWithImage(config.sandbox.templates);
  const namesTemplate = (path: string, name: string): void => {
    const fix = "name one that owlclaw mcp-server template list shows, or build it with template build";
    attempt(path, name, { read: () => checkTemplate(name, { dataFolder, withImage }), fix });
  };
  namesTemplate("sandbox.template", config.sandbox.template);
  for (const name of Object.keys(config.sandbox.network.templates)) namesTemplate("sandbox.network.templates", name);
  for (const name of Object.keys(config.sandbox.templates)) namesTemplate("sandbox.templates", name);
  return { issues, publicKeyPem: publicKeyPem ?? "", volumes: checkVolumes(context, attempt, issues) };
}

function checkVolumes(context: FileContext, attempt: Attempt, issues: ConfigIssue[]): readonly PlannedVolume[] {
  const { config, dataFolder, trustFolder, originOf } = context;
  const workspacePath = config.sandbox.workspace;
  const surroundings = { dataFolders: [dataFolder, dirname(trustFolder)], workspacePath };
  const volumes = config.sandbox.volumes.flatMap((text) => {
    const volume = parseVolume(text, workspacePath);
    const found = attempt("sandbox.volumes", text, {
      read: () => {
        checkVolume(volume, surroundings);
        return { text, volume };
      },
      fix: "name a folder of this machine and where it appears, as in /srv/data:/data:ro",
    });
    return found === undefined ? [] : [found];
  });
  if (volumes.length === 0) return [];
  const trusted = trustedPaths(context);
  return volumes.flatMap(({ text, volume }) => {
    const others = volumes.map((each) => each.volume).filter((each) => each !== volume);
    const planned = planVolume(volume, { others, trusted });
    if (!isVolumeProblem(planned)) return [planned];
    const path = "sandbox.volumes";
    issues.push({ path, value: showValue(path, text), ...planned, ...originOf(path) });
    return [];
  });
}

function checkTls({ http }: Config, attempt: Attempt): void {
  const { certFile, keyFile } = http.tls;
  if (certFile !== "" && keyFile !== "") {
    const certificate = attempt("http.tls.certFile", certFile, {
      read: () => new X509Certificate(readFileSync(certFile)),
      fix: "give the path of a readable PEM file with the certificate",
    });
    const key = attempt("http.tls.keyFile", keyFile, {
      read: () => createPrivateKey(readFileSync(keyFile)),
      fix: "give the path of a readable PEM file with the private key, without a passphrase",
    });
    if (certificate !== undefined && key !== undefined) {
      attempt("http.tls.keyFile", keyFile, {
        read: () => assertPair(certificate, key),
        fix: "give the private key that the certificate was made for",
      });
    }
  }
}

function toSpkiPem(publicKey: string): string {
  // In environment variables line breaks are often written as the two characters
  // .
  const pem = isPem(publicKey) ? publicKey.replaceAll("\\n", "\n") : readFileSync(publicKey, "utf8");
  if (pem.includes("PRIVATE KEY-----")) throw new Error("it holds a private key, which the server must not have");
  return createPublicKey(pem).export({ type: "spki", format: "pem" }).toString();
}

function assertPair(certificate: X509Certificate, key: KeyObject): void {
  if (!certificate.checkPrivateKey(key)) throw new Error("the private key does not belong to the certificate");
}

/**
 * Replaces messages of the crypto library ("error:1E08010C:DECODER routines::unsupported"), which do not name the
 * problem.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? String(error.code) : "";
  if (code === "ENOENT") return "there is no such file";
  if (code === "EACCES") return "the file may not be read by this user";
  if (code === "ENOTDIR") return "it is a file, not a folder";
  if (code === "EISDIR") return "it is a folder, not a file";
  return code.startsWith("ERR_OSSL") || code === "ERR_INVALID_ARG_VALUE"
    ? "it holds no PEM that can be read"
    : error.message;
}

const WRITABLE_FOR_ALL = 0o002;
const ROOT_UID = 0;

/**
 * The owner of the data folder can replace the keys, the ledger and the code in it. In a folder that every user may
 * write, such as /tmp, another user may have created it first. Root may use a folder of another user elsewhere, for
 * example with `sudo`.
 * @throws Error with the reason.
 */
export function assertOwnFolder(path: string): void {
  const uid = process.getuid?.();
  const entry = lstatSync(path, { throwIfNoEntry: false });
  if (uid === undefined || entry === undefined) return;
  const isTrusted = (owner: number): boolean => owner === uid || owner === ROOT_UID;
  if (entry.isSymbolicLink() && !isTrusted(entry.uid))
    throw new Error(`it is a link that another user made (uid ${entry.uid})`);
  const folder = statSync(path, { throwIfNoEntry: false });
  if (folder === undefined || isTrusted(folder.uid)) return;
  const isShared = (statSync(dirname(path)).mode & WRITABLE_FOR_ALL) !== 0;
  if (isShared || uid !== ROOT_UID)
    throw new Error(`it belongs to another user (uid ${folder.uid}), who could replace keys and records`);
}
