import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const STARTED_AT = 0;
const REVOKED_AT = 8;

/**
 * Two numbers in a file that server and worker have open: `started`, the last request that the worker started, and
 * `revoked`, whether the server revoked the others. The worker writes the first and then reads the second; the server
 * does it in the opposite order. So a request that the worker has not started is run by at most one of the two, without
 * a message between them: a blocked worker cannot answer.
 */
export class CallRegisters {
  readonly fd: number;
  readonly #buffer = Buffer.alloc(8);

  private constructor(fd: number) {
    this.fd = fd;
  }

  /** The server's side. The file is unlinked when this returns. */
  static create(): CallRegisters {
    const folder = mkdtempSync(join(tmpdir(), "owlclaw-worker-"));
    try {
      const registers = new CallRegisters(openSync(join(folder, "registers"), "w+", 0o600));
      registers.#write(STARTED_AT, 0);
      registers.#write(REVOKED_AT, 0);
      return registers;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /** The worker's side. */
  static inherited(fd: number): CallRegisters {
    return new CallRegisters(fd);
  }

  /** In the worker: whether the request may run. */
  start(id: number): boolean {
    this.#write(STARTED_AT, id);
    return this.#read(REVOKED_AT) === 0;
  }

  /** In the server: revokes all requests that are not started. Returns the last started one. */
  revoke(): number {
    this.#write(REVOKED_AT, 1);
    return this.#read(STARTED_AT);
  }

  /** In the server: later requests may run again. */
  restore(): void {
    this.#write(REVOKED_AT, 0);
  }

  close(): void {
    closeSync(this.fd);
  }

  #write(position: number, value: number): void {
    this.#buffer.writeDoubleLE(value);
    writeSync(this.fd, this.#buffer, 0, 8, position);
  }

  #read(position: number): number {
    readSync(this.fd, this.#buffer, 0, 8, position);
    return this.#buffer.readDoubleLE();
  }
}
