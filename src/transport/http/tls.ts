import type { CertificateInUse } from "../../operator/health-checks.ts";
import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { Logger } from "../../telemetry/logger.ts";

const POLL_MS = 2000;

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface TlsPair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Reads both files and checks that the key belongs to the certificate. */
export function readTls(files: TlsFiles): TlsPair {
  const pair = readPair(files);
  createSecureContext(toContext(pair));
  return pair;
}

export function toContext({ cert, key }: TlsPair): SecureContextOptions {
  return { cert, key, minVersion: "TLSv1.2" };
}

export interface TlsWatcherOptions {
  readonly files: TlsFiles;
  /** The pair that the server started with, so that a change before the first poll is detected. */
  readonly inUse: TlsPair;
  readonly logger: Logger;
  readonly onChange: (pair: TlsPair) => void;
}

/** Calls `onChange` with each new certificate. A pair that does not match is ignored: the current one stays in use. */
export class TlsWatcher {
  readonly #options: TlsWatcherOptions;
  readonly #timer: NodeJS.Timeout;
  #inUse: TlsPair;
  #seen: TlsPair;
  #isRefused = false;

  constructor(options: TlsWatcherOptions) {
    this.#options = options;
    this.#inUse = options.inUse;
    this.#seen = options.inUse;
    this.#timer = setInterval(() => this.look(), POLL_MS);
    this.#timer.unref();
  }

  get pair(): TlsPair {
    return this.#inUse;
  }

  get certificate(): CertificateInUse {
    return { cert: this.#inUse.cert, isRefused: this.#isRefused };
  }

  /** Compares contents, not modification times: certificate tools replace symbolic links. */
  look(): void {
    const { files, logger } = this.#options;
    try {
      const pair = readPair(files);
      if (!isSame(pair, this.#seen)) this.#take(pair);
      this.#isRefused = !isSame(pair, this.#inUse);
    } catch (error) {
      this.#isRefused = true;
      logger.warning("the new certificate cannot be used, the old one stays", { certFile: files.certFile, error });
    }
  }

  #take(pair: TlsPair): void {
    const { files, logger, onChange } = this.#options;
    this.#seen = pair;
    createSecureContext(toContext(pair));
    onChange(pair);
    this.#inUse = pair;
    logger.info("certificate reloaded", { certFile: files.certFile });
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

function readPair({ certFile, keyFile }: TlsFiles): TlsPair {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}

function isSame(one: TlsPair, other: TlsPair): boolean {
  return one.cert.equals(other.cert) && one.key.equals(other.key);
}
