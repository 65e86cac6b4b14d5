import type { GuestResult } from "../../contract/guest.ts";
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import type { Principal } from "../auth/principal.ts";
import { OwlError } from "../errors/owl-error.ts";
import { FLAVORS } from "./flavors.ts";
import type { Sandbox } from "./sandbox.ts";
import type { SandboxUse, Sandboxes } from "./sandboxes.ts";

/** Large enough that the way to the guest and back does not count, small enough that many transfers fit in memory. */
const MAX_PAGE_BYTES = 256 * 1024;
/** Longer than this for one page is stuck. */
const PAGE_TIMEOUT_MS = 60_000;
const EXIT_NEW = 20;
const EXIT_NOT_A_FILE = 21;
const EXIT_OUTSIDE = 22;
/** The shell starts in the workspace. A link is followed as far as it stays there; permissions of an old file stay. */
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

/** Whole files in and out of workspaces, in pages. The guest opens them: no path of a workspace is opened out here. */
export class FileTransfer {
  readonly #options: FileTransferOptions;

  constructor(options: FileTransferOptions) {
    this.#options = options;
  }

  /** The caller's sandbox, busy until `release`; throws as for an unknown one when it is somebody else's. */
  async open(principal: Principal, id: string): Promise<OpenWorkspace> {
    const sandboxUse = await this.#options.sandboxes.open({ principal, sessionId: undefined }, id);
    return new OpenWorkspace(sandboxUse, this.#options);
  }

  /** The same for a sandbox that lives: one that has ended has nothing to read, and is not made again. */
  async openLive(principal: Principal, id: string): Promise<OpenWorkspace> {
    const sandboxUse = await this.#options.sandboxes.openLive({ principal, sessionId: undefined }, id);
    return new OpenWorkspace(sandboxUse, this.#options);
  }

  /** For operators, by the name of its cell: whoever owns it, taken over or not. */
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
    // A page travels as base64 in a frame with a little around it.
    this.#pageBytes = Math.max(1, Math.min(MAX_PAGE_BYTES, Math.floor(options.maxFrameBytes / 2)));
  }

  /** Its name in lists and logs, which opens nothing. */
  get name(): string {
    return this.#sandbox.plan.instanceId;
  }

  get wasCreated(): boolean {
    return this.#sandboxUse.wasCreated;
  }

  /** The most that can ever fit; a folder of the host in the workspace's place has no quota of ours. */
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

  /** Others see the old file or the new one, never a part: the new is written beside it and then takes its name. */
  async write(path: string, chunks: AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number; isNew: boolean }> {
    const part = join(dirname(path), `.owlclaw-${randomBytes(9).toString("base64url")}.part`);
    await this.#refuseIfUnfit(path);
    try {
      const sizeBytes = await this.#append(part, chunks);
      return { sizeBytes, isNew: await this.#putInPlace(part, path) };
    } catch (error) {
      // What failed is worth more than what became of its remains: they end with the sandbox.
      await this.#shell('rm -f -- "$FROM"', { FROM: part }).catch(() => undefined);
      throw inWordsOf(path, part, error);
    }
  }

  release(): void {
    this.#sandboxUse.release();
  }

  /** Says no before the first byte of the body is read. */
  async #refuseIfUnfit(path: string): Promise<void> {
    try {
      await this.#page(path, 0, 0);
    } catch (error) {
      const reason = error instanceof OwlError ? error.facts["reason"] : undefined;
      // A file that may not be read may still be replaced: that is for the folder to say.
      if (reason !== "not_found" && reason !== "permission_denied") throw error;
    }
  }

  #page(path: string, offset: number, length: number): Promise<GuestResult<"file.read">> {
    const params = { path, encoding: "base64", offset, length, maxBytes: length } as const;
    return this.#sandbox.request("file.read", params, { timeoutMs: PAGE_TIMEOUT_MS });
  }

  /** Every page is read from the path anew: before the last one goes out, it is known that all were of the same file. */
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
  /** From `start` up to `end`, which is not part of it. Fails when the file changes meanwhile. */
  bytes(start: number, end: number): AsyncIterable<Buffer>;
}

interface Span {
  readonly start: number;
  readonly end: number;
  readonly sizeBytes: number;
  readonly version: string;
}

/** Pages of equal length but for the last; an empty file is one empty page. */
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

/** Callers know nothing of the name that a file has while it is written. */
function inWordsOf(path: string, part: string, error: unknown): unknown {
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
