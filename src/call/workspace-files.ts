import type { Principal } from "../auth/principal.ts";

/** The files of one sandbox, which stays busy until `release`. */
export interface OpenFiles {
  readonly name: string;
  readonly wasCreated: boolean;
  readonly maxBytes: number;
  read(path: string): Promise<{
    readonly sizeBytes: number;
    bytes(start: number, end: number): AsyncIterable<Uint8Array>;
  }>;
  write(path: string, chunks: AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number; isNew: boolean }>;
  release(): void;
}

/** Whole files of sandboxes, on this server or on another one. */
export interface WorkspaceFiles {
  /** @throws OwlError as for an unknown sandbox when the principal does not own it. */
  open(principal: Principal, id: string): Promise<OpenFiles>;
  /** @throws OwlError also when the sandbox has ended: a new one would have no files. */
  openLive(principal: Principal, id: string): Promise<OpenFiles>;
}
