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

/** Reads both files and makes sure that they belong together. */
export function readTls(files: TlsFiles): TlsPair {
  const pair = readPair(files);
  createSecureContext(toContext(pair));
  return pair;
}

export function toContext({ cert, key }: TlsPair): SecureContextOptions {
  return { cert, key, minVersion: "TLSv1.2" };
}

/** Calls back with each new certificate. A pair that does not fit is left alone: the one in use stays. */
export class TlsWatcher {
  readonly #timer: NodeJS.Timeout;
  #seen: TlsPair;

  /** `inUse` is what the server started with, so that no change between its reading and the first look is missed. */
  constructor(options: { files: TlsFiles; inUse: TlsPair; logger: Logger; onChange: (pair: TlsPair) => void }) {
    const { files, inUse, logger, onChange } = options;
    this.#seen = inUse;
    // Contents are compared, not times: certificate tools swap symbolic links.
    this.#timer = setInterval(() => {
      try {
        const pair = readPair(files);
        if (pair.cert.equals(this.#seen.cert) && pair.key.equals(this.#seen.key)) return;
        this.#seen = pair;
        createSecureContext(toContext(pair));
        onChange(pair);
        logger.info("certificate reloaded", { certFile: files.certFile });
      } catch (error) {
        logger.warning("the new certificate cannot be used, the old one stays", { certFile: files.certFile, error });
      }
    }, POLL_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

function readPair({ certFile, keyFile }: TlsFiles): TlsPair {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}
