import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { Logger } from "../../telemetry/logger.ts";

const POLL_MS = 2000;

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Reads both files and makes sure that they belong together. */
export function readTls({ certFile, keyFile }: TlsFiles): SecureContextOptions {
  const options = { cert: readFileSync(certFile), key: readFileSync(keyFile), minVersion: "TLSv1.2" } as const;
  createSecureContext(options);
  return options;
}

/** Calls back with each new certificate. A pair that does not fit is left alone: the old one stays in use. */
export function watchTls(
  files: TlsFiles,
  logger: Logger,
  onChange: (options: SecureContextOptions) => void,
): () => void {
  const paths = [files.certFile, files.keyFile];
  const reload = (): void => {
    try {
      onChange(readTls(files));
      logger.info("certificate reloaded", { certFile: files.certFile });
    } catch (error) {
      logger.warning("the new certificate cannot be used, the old one stays", { certFile: files.certFile, error });
    }
  };
  // Polling sees renewals through symbolic links, which is how certificate tools swap files.
  for (const path of paths) watchFile(path, { interval: POLL_MS, persistent: false }, reload);
  return () => {
    for (const path of paths) unwatchFile(path, reload);
  };
}
