import * as z from "zod";
import type { Principal } from "../auth/principal.ts";
import type { TransferMessage, TransferStep } from "./forward-message.ts";
import type { Forwarder } from "./forwarder.ts";
import { OwlError } from "../errors/owl-error.ts";
import { newTraceId } from "../mcp/request-observer.ts";
import type { FileTransfer } from "../sandbox/file-transfer.ts";
import { serverIdOf } from "../sandbox/sandbox-request.ts";
import type { OpenFiles, WorkspaceFiles } from "../call/workspace-files.ts";
import { ForwardedTransfers } from "./forwarded-transfers.ts";

/** One step of a transfer, after the first. */
type Ask = <T>(step: TransferStep, answer: z.ZodType<T>) => Promise<T>;

const openedSchema = z.object({
  transfer: z.string(),
  name: z.string(),
  wasCreated: z.boolean(),
  maxBytes: z.number().nullable(),
});
const sizeSchema = z.object({ sizeBytes: z.number() });
const pieceSchema = z.object({ data: z.string().nullable() });
const writtenSchema = z.object({ sizeBytes: z.number(), isNew: z.boolean() });

/** A page of a file takes a minute at the most, and then it is stuck. */
const STEP_MS = 90_000;
const MAX_PIECE_BYTES = 256 * 1024;

/** Whole files, wherever their sandbox is. The server that was asked governs and records; the other looks whose it is. */
export class FileOwners {
  readonly #serverId: string;
  readonly #forwarder: Forwarder;
  #transfers: ForwardedTransfers | undefined;

  constructor({ serverId, forwarder }: { readonly serverId: string; readonly forwarder: Forwarder }) {
    this.#serverId = serverId;
    this.#forwarder = forwarder;
  }

  transfersFrom(local: FileTransfer): WorkspaceFiles {
    this.#transfers = new ForwardedTransfers(this.#serverId, local);
    const isHere = (id: string): boolean => (serverIdOf(id) ?? this.#serverId) === this.#serverId;
    return {
      open: (principal, id) => (isHere(id) ? local.open(principal, id) : this.#open(principal, id, false)),
      openLive: (principal, id) => (isHere(id) ? local.openLive(principal, id) : this.#open(principal, id, true)),
    };
  }

  /** A step that another server asks for. */
  async run(message: TransferMessage): Promise<unknown> {
    if (this.#transfers === undefined) throw new OwlError("session_not_found", "this server has no sandboxes");
    return this.#transfers.run(message);
  }

  async #open({ id: principal }: Principal, sessionId: string, isLive: boolean): Promise<OpenFiles> {
    const owner = serverIdOf(sessionId) ?? "";
    const traceId = newTraceId();
    const ask: Ask = async (step, answer) => {
      const message = { kind: "transfer", step, principal, traceId } as const;
      const line = { signal: AbortSignal.timeout(STEP_MS), hear: () => undefined };
      return answer.parse(await this.#forwarder.send(owner, message, line));
    };
    const opened = await ask({ do: "open", sessionId, isLive }, openedSchema);
    const { transfer, name, wasCreated, maxBytes } = opened;
    return {
      name,
      wasCreated,
      maxBytes: maxBytes ?? Number.POSITIVE_INFINITY,
      async read(path) {
        const { sizeBytes } = await ask({ do: "read", transfer, path }, sizeSchema);
        return { sizeBytes, bytes: (start, end) => pieces(ask, { transfer, start, end }) };
      },
      async write(path, chunks) {
        await ask({ do: "write", transfer, path }, z.null());
        for await (const chunk of chunks) await push(ask, transfer, chunk);
        return ask({ do: "end", transfer }, writtenSchema);
      },
      // A server that does not hear of it gives it up by itself.
      release: () => void ask({ do: "release", transfer }, z.null()).catch(() => undefined),
    };
  }
}

interface Span {
  readonly transfer: string;
  readonly start: number;
  readonly end: number;
}

async function* pieces(ask: Ask, { transfer, start, end }: Span): AsyncGenerator<Uint8Array> {
  await ask({ do: "bytes", transfer, start, end }, z.null());
  for (;;) {
    const { data } = await ask({ do: "next", transfer }, pieceSchema);
    if (data === null) return;
    yield Buffer.from(data, "base64");
  }
}

async function push(ask: Ask, transfer: string, chunk: Uint8Array): Promise<void> {
  for (let start = 0; start < chunk.length; start += MAX_PIECE_BYTES) {
    const data = Buffer.from(chunk.subarray(start, start + MAX_PIECE_BYTES)).toString("base64");
    await ask({ do: "push", transfer, data }, z.null());
  }
}
