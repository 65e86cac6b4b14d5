import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { TransferMessage, TransferStep } from "./forward-message.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { FileTransfer, OpenWorkspace, WorkspaceFile } from "../sandbox/file-transfer.ts";
import { serverIdOf } from "../sandbox/sandbox-request.ts";

interface Writing {
  readonly input: PassThrough;
  readonly done: Promise<{ readonly sizeBytes: number; readonly isNew: boolean }>;
}

interface Transfer {
  readonly principal: string;
  readonly files: OpenWorkspace;
  file?: WorkspaceFile;
  reading?: AsyncIterator<Uint8Array>;
  writing?: Writing;
  /** When it is given up, since the other server has not asked for more. */
  expiry?: NodeJS.Timeout;
  isBusy: boolean;
  /** Nobody wants it any more: it ends with the step that is under way. */
  isGivenUp: boolean;
}

type Within = Exclude<TransferStep, { readonly do: "open" | "release" }>;

const MAX_TRANSFERS = 256;
/** Longer than a client may be silent in the middle of its file by default. */
const IDLE_MS = 120_000;
const ID_BYTES = 18;

/** Files that another server moves for its client, in and out of sandboxes of this one. */
export class ForwardedTransfers {
  readonly #serverId: string;
  readonly #files: FileTransfer;
  readonly #transfers = new Map<string, Transfer>();

  constructor(serverId: string, files: FileTransfer) {
    this.#serverId = serverId;
    this.#files = files;
  }

  async run({ step, principal }: TransferMessage): Promise<unknown> {
    if (step.do === "open") return this.#open(step, principal);
    const transfer = this.#transfers.get(step.transfer);
    if (transfer === undefined || transfer.principal !== principal) throw lost();
    if (step.do === "release") return this.#giveUp(step.transfer, transfer);
    if (transfer.isBusy) throw lost();
    clearTimeout(transfer.expiry);
    transfer.isBusy = true;
    try {
      return await within(transfer, step);
    } finally {
      transfer.isBusy = false;
      if (transfer.isGivenUp) await this.#close(step.transfer, transfer);
      else this.#expire(step.transfer, transfer);
    }
  }

  async #giveUp(id: string, transfer: Transfer): Promise<null> {
    transfer.isGivenUp = true;
    transfer.writing?.input.destroy(lost());
    if (!transfer.isBusy) await this.#close(id, transfer);
    return null;
  }

  async #open({ sessionId, isLive }: Extract<TransferStep, { do: "open" }>, principal: string): Promise<unknown> {
    // What names no sandbox of this server would make a new one.
    if (serverIdOf(sessionId) !== this.#serverId)
      throw new OwlError("session_not_found", "a file must name a sandbox of the server that it is sent to");
    if (this.#transfers.size >= MAX_TRANSFERS)
      throw new OwlError("overloaded", "too many files are on their way to this server and from it");
    const owner = { id: principal, scopes: [], claims: {} };
    const files = await (isLive ? this.#files.openLive(owner, sessionId) : this.#files.open(owner, sessionId));
    const id = randomBytes(ID_BYTES).toString("base64url");
    const transfer: Transfer = { principal, files, isBusy: false, isGivenUp: false };
    this.#transfers.set(id, transfer);
    this.#expire(id, transfer);
    const { name, wasCreated, maxBytes } = files;
    return { transfer: id, name, wasCreated, maxBytes: Number.isFinite(maxBytes) ? maxBytes : null };
  }

  #expire(id: string, transfer: Transfer): void {
    transfer.expiry = setTimeout(() => void this.#close(id, transfer), IDLE_MS).unref();
  }

  /** A file that has not come whole is none. */
  async #close(id: string, { files, reading, writing, expiry }: Transfer): Promise<void> {
    clearTimeout(expiry);
    this.#transfers.delete(id);
    try {
      await reading?.return?.();
      writing?.input.destroy(lost());
      await writing?.done;
    } catch {
      // Told to whoever asked for it, if anybody still does.
    } finally {
      files.release();
    }
  }
}

async function within(transfer: Transfer, step: Within): Promise<unknown> {
  const { files } = transfer;
  switch (step.do) {
    case "read":
      transfer.file = await files.read(step.path);
      return { sizeBytes: transfer.file.sizeBytes };
    case "bytes":
      if (transfer.file === undefined) throw lost();
      transfer.reading = transfer.file.bytes(step.start, step.end)[Symbol.asyncIterator]();
      return null;
    case "next":
      return { data: await nextPiece(transfer) };
    case "write":
      transfer.writing = beginWriting(files, step.path);
      return null;
    case "push":
      return push(transfer, Buffer.from(step.data, "base64"));
    case "end":
      return end(transfer);
  }
}

async function nextPiece({ reading }: Transfer): Promise<string | null> {
  if (reading === undefined) throw lost();
  const next = await reading.next();
  return next.done === true ? null : Buffer.from(next.value).toString("base64");
}

async function end({ writing }: Transfer): Promise<unknown> {
  if (writing === undefined) throw lost();
  writing.input.end();
  return writing.done;
}

function beginWriting(files: OpenWorkspace, path: string): Writing {
  const input = new PassThrough();
  // Whoever ends it early is told by what is written.
  input.on("error", () => undefined);
  const done = files.write(path, input);
  done.catch(() => input.destroy());
  return { input, done };
}

/** Answered when there is room for more. */
async function push({ writing }: Transfer, data: Buffer): Promise<null> {
  if (writing === undefined) throw lost();
  const { input, done } = writing;
  if (input.destroyed) await done;
  if (input.write(data)) return null;
  await Promise.race([once(input, "drain"), done]);
  return null;
}

function lost(): OwlError {
  return new OwlError("session_elsewhere", "the server with the sandbox does not have this file on its way any more", {
    retryable: true,
  });
}
