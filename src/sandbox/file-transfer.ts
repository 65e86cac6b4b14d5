import type { GuestResult } from "../../contract/guest.ts";
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import type { Principal } from "../auth/principal.ts";
import { OwlError } from "../errors/owl-error.ts";
import { FLAVORS } from "./flavors.ts";
import type { Sandbox } from "./sandbox.ts";
import type { SandboxUse, Sandboxes } from "./sandboxes.ts";

/** Large enough that the round trip to the guest does not count, small enough for many transfers in memory. */
const MAX_PAGE_BYTES = 256 * 1024;
/** Time limit for one page. */
const PAGE_TIMEOUT_MS = 60_000;
const EXIT_NEW = 20;
const EXIT_NOT_A_FILE = 21;
const EXIT_OUTSIDE = 22;
/** The shell starts in the workspace. Links are followed within the workspace; the permissions of an old file are kept. */
const PUT_IN_PLACE = `
to=$(readlink -m -- "$TO") || exit 1
case "$to" in "$(pwd -P)"/*) ;; *) exit ${EXIT_OUTSIDE} ;; esac
if [ ! -e "$to" ]; then mv -fT -- "$FROM" "$to" && exit ${EXIT_NEW}; exit 1; fi
[ -f "$to" ] || exit ${EXIT_NOT_A_FILE}
chmod --reference="$to" -- "$FROM" && mv -fT -- "$FROM" "$to"`;

interface FileTransferOptions {
  readonly sandboxes: Sandboxes;
  readonly workspacePath: string;
  readonly maxFrameBytes: number;
}

/** Reads and writes whole files of workspaces, in pages. The guest opens them: the server opens no path of a workspace. */
export class FileTransfer {
  readonly #options: FileTransferOptions;

  constructor(options: FileTransferOptions) {
    this.#options = options;
  }

  /** The caller's sandbox, busy until `release`. For a sandbox of another principal the error is that of an unknown id. */
  async open(principal: Principal, id: string): Promise<OpenWorkspace> {
    const sandboxUse = await this.#options.sandboxes.open({ principal, sessionId: undefined }, id);
    return new OpenWorkspace(sandboxUse, this.#options);
  }

  /** The same, but a sandbox that has ended is not replaced by an empty one. */
  async openLive(principal: Principal, id: string): Promise<OpenWorkspace> {
    const sandboxUse = await this.#options.sandboxes.openLive({ principal, sessionId: undefined }, id);
    return new OpenWorkspace(sandboxUse, this.#options);
  }

  /** For operators: the sandbox of any owner, also while an operator has taken it over. */
  async openByInstance(instanceId: string): Promise<OpenWorkspace> {
    const sandboxUse = await this.#options.sandboxes.useByInstance(instanceId);
    if (sandboxUse === undefined) throw new OwlError("session_not_found", "there is no such sandbox");
    return new OpenWorkspace(sandboxUse, this.#options);
  }
}

export class OpenWorkspace {
  readonly #sandboxUse: SandboxUse;
  readonly #sandbox: Sandbox;
  readonly #options: FileTransferOptions;
  readonly #pageBytes: number;

  constructor(sandboxUse: SandboxUse, options: FileTransferOptions) {
    this.#sandboxUse = sandboxUse;
    this.#sandbox = sandboxUse.sandbox;
    this.#options = options;
    // A page is sent as base64 in one frame.
    this.#pageBytes = Math.max(1, Math.min(MAX_PAGE_BYTES, Math.floor(options.maxFrameBytes / 2)));
  }

  /** Its name in lists and logs. It gives no access. */
  get name(): string {
    return this.#sandbox.plan.instanceId;
  }

  get wasCreated(): boolean {
    return this.#sandboxUse.wasCreated;
  }

  /** The disk quota; a workspace that is a folder of the host has none. */
  get maxBytes(): number {
    const { volumes, flavor } = this.#sandbox.plan;
    const isMounted = volumes.some(({ guestPath }) => guestPath === this.#options.workspacePath);
    return isMounted ? Number.POSITIVE_INFINITY : FLAVORS[flavor].diskBytes;
  }

  async read(path: string): Promise<WorkspaceFile> {
    const first = await this.#page(path, 0, this.#pageBytes);
    const whole = Buffer.from(first.content, "base64");
    if (whole.length >= first.sizeBytes)
      return { sizeBytes: whole.length, bytes: (start, end) => only(whole.subarray(start, end)) };
    const { sizeBytes } = first;
    const version = await this.#version(path);
    return { sizeBytes, bytes: (start, end) => this.#pages(path, { start, end, sizeBytes, version }) };
  }

  /** Atomic: the new file is written beside the old one and renamed. */
  async write(path: string, chunks: AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number; isNew: boolean }> {
    const part = join(dirname(path), `.owlclaw-${randomBytes(9).toString("base64url")}.part`);
    await this.#refuseIfUnfit(path);
    try {
      const sizeBytes = await this.#append(part, chunks);
      return { sizeBytes, isNew: await this.#putInPlace(part, path) };
    } catch (error) {
      // When the removal fails too, the first error is reported; the file is removed with the sandbox.
      await this.#shell('rm -f -- "$FROM"', { FROM: part }).catch(() => undefined);
      throw withPath(path, part, error);
    }
  }

  release(): void {
    this.#sandboxUse.release();
  }

  /** Rejects before the first byte of the body is read. */
  async #refuseIfUnfit(path: string): Promise<void> {
    try {
      await this.#page(path, 0, 0);
    } catch (error) {
      const reason = error instanceof OwlError ? error.facts["reason"] : undefined;
      // An unreadable file may be replaced: that depends on the permissions of its folder.
      if (reason !== "not_found" && reason !== "permission_denied") throw error;
    }
  }

  #page(path: string, offset: number, length: number): Promise<GuestResult<"file.read">> {
    const params = { path, encoding: "base64", offset, length, maxBytes: length } as const;
    return this.#sandbox.request("file.read", params, { timeoutMs: PAGE_TIMEOUT_MS });
  }

  /** Each page opens the path again. Before the last page is sent, all pages are known to be of the same file version. */
  async *#pages(path: string, { start, end, sizeBytes, version }: Span): AsyncGenerator<Buffer> {
    for (let offset = start; offset < end;) {
      const length = Math.min(this.#pageBytes, end - offset);
      const page = await this.#page(path, offset, length);
      const bytes = Buffer.from(page.content, "base64");
      offset += bytes.length;
      const isChanged = bytes.length !== length || page.sizeBytes !== sizeBytes;
      if (isChanged || (offset >= end && (await this.#version(path)) !== version)) throw changed(path);
      yield bytes;
    }
  }

  async #version(path: string): Promise<string> {
    const { stdout, exitCode } = await this.#shell("stat -L -c '%d %i %s %z' -- \"$FROM\"", { FROM: path });
    if (exitCode !== 0) throw changed(path);
    return stdout.text;
  }

  async #append(part: string, chunks: AsyncIterable<Uint8Array>): Promise<number> {
    let sizeBytes = 0;
    let mode: "create" | "append" = "create";
    for await (const page of inPages(chunks, MAX_PAGE_BYTES)) {
      sizeBytes += page.length;
      if (sizeBytes > this.maxBytes) throw tooLarge(this.maxBytes);
      const params = { path: part, content: page.toString("base64"), encoding: "base64", mode } as const;
      const written = await this.#sandbox.request("file.write", params, { timeoutMs: PAGE_TIMEOUT_MS });
      if (written.sizeBytes !== sizeBytes) throw changed(part);
      mode = "append";
    }
    return sizeBytes;
  }

  async #putInPlace(part: string, path: string): Promise<boolean> {
    const { exitCode, stderr } = await this.#shell(PUT_IN_PLACE, { FROM: part, TO: path });
    if (exitCode === 0 || exitCode === EXIT_NEW) return exitCode === EXIT_NEW;
    if (exitCode === EXIT_NOT_A_FILE)
      throw failure("not_a_file", `${path}: it is no regular file`, "name a file, or remove what is there first");
    if (exitCode === EXIT_OUTSIDE)
      throw failure("outside_workspace", `${path}: it is outside the workspace`, "use a path in the workspace");
    throw failure("permission_denied", `${path}: it could not be put in place: ${stderr.text.slice(0, 200).trim()}`);
  }

  #shell(command: string, env: Readonly<Record<string, string>>): Promise<GuestResult<"shell.exec">> {
    const params = { command, env, timeoutMs: PAGE_TIMEOUT_MS, maxOutputChars: 1000, background: false };
    return this.#sandbox.runTimed("shell.exec", params);
  }
}

export interface WorkspaceFile {
  readonly sizeBytes: number;
  /** From `start` up to, not including, `end`. Rejects when the file changes meanwhile. */
  bytes(start: number, end: number): AsyncIterable<Buffer>;
}

interface Span {
  readonly start: number;
  readonly end: number;
  readonly sizeBytes: number;
  readonly version: string;
}

/** Pages of equal length except the last; an empty file is one empty page. */
async function* inPages(chunks: AsyncIterable<Uint8Array>, pageBytes: number): AsyncGenerator<Buffer> {
  let page = Buffer.allocUnsafe(pageBytes);
  let used = 0;
  let isEmpty = true;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length;) {
      const piece = chunk.subarray(taken, taken + pageBytes - used);
      page.set(piece, used);
      used += piece.length;
      taken += piece.length;
      if (used < pageBytes) continue;
      yield page;
      isEmpty = false;
      page = Buffer.allocUnsafe(pageBytes);
      used = 0;
    }
  }
  if (used > 0 || isEmpty) yield page.subarray(0, used);
}

async function* only(bytes: Buffer): AsyncGenerator<Buffer> {
  if (bytes.length > 0) yield bytes;
}

/** Replaces the name of the temporary file in an error message. */
function withPath(path: string, part: string, error: unknown): unknown {
  if (!(error instanceof OwlError) || !error.message.includes(part)) return error;
  const { kind, message, facts, hint } = error;
  return new OwlError(kind, message.replaceAll(part, path), { facts, hint, cause: error });
}

function tooLarge(maxBytes: number): OwlError {
  const hint = "send less, or make a sandbox of a larger flavor with sandbox_create";
  return failure("disk_full", `the file would be larger than the sandbox's disk quota of ${maxBytes} bytes`, hint);
}

function changed(path: string): OwlError {
  return failure("changed", `${path}: it changed while it was transferred`, "try again when nothing writes to it");
}

function failure(reason: string, message: string, hint?: string): OwlError {
  return new OwlError("tool_failure", message, { facts: { reason }, ...(hint !== undefined && { hint }) });
}
