import type { GuestResult } from "../../contract/guest.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { FileTransfer } from "../sandbox/file-transfer.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { type ApiRequest, type ApiRoute, Attachment } from "./api.ts";
import type { FileEntry, FileList, FileText } from "./contract-files.ts";
import { changesOf } from "./file-changes.ts";
import type { OperatorSandboxService } from "./sandbox-service.ts";

export interface SandboxFileOptions {
  readonly service: OperatorSandboxService;
  readonly files: FileTransfer;
  readonly workspacePath: string;
}

const TIMEOUT_MS = 15_000;
const MAX_ENTRIES = 2000;
const MAX_TEXT_BYTES = 262_144;
const MAX_PATH_CHARS = 4096;

/**
 * `sandboxes/{id}/files…`: folders, texts, uploads, downloads and changes. The guest opens all of these files; the
 * server opens no path itself.
 */
export function sandboxFileRoutes(options: SandboxFileOptions): readonly ApiRoute[] {
  const { service, files, workspacePath } = options;
  return [
    {
      method: "GET",
      path: "sandboxes/{id}/files",
      answer: ({ parts: [id = ""], query, signal }) =>
        service.use(id, async (sandbox) => ({ ...(await listOf(sandbox, pathOf(query, "."), signal)) })),
    },
    {
      method: "GET",
      path: "sandboxes/{id}/text",
      answer: async ({ operator, parts: [id = ""], query, signal }) => {
        const path = pathOf(query);
        await service.act(operator, id, { name: "file_read", args: { path } });
        return service.use(id, async (sandbox) => ({ ...(await textOf(sandbox, path, signal)) }));
      },
    },
    { method: "GET", path: "sandboxes/{id}/file", answer: (request) => download(options, request) },
    {
      method: "PUT",
      path: "sandboxes/{id}/file",
      answer: async ({ operator, parts: [id = ""], query, bytes }) => {
        const path = pathOf(query);
        await service.act(operator, id, { name: "file_write", args: { path } });
        const workspace = await files.openByInstance(id);
        try {
          return { path, ...(await workspace.write(path, bytes)) };
        } finally {
          workspace.release();
        }
      },
    },
    {
      method: "GET",
      path: "sandboxes/{id}/changes",
      answer: async ({ operator, parts: [id = ""], signal }) => {
        await service.act(operator, id, { name: "changes_read" });
        return service.use(id, async (sandbox) => ({ ...(await changesOf(sandbox, workspacePath, signal)) }));
      },
    },
  ];
}

async function download({ service, files }: SandboxFileOptions, request: ApiRequest): Promise<Attachment> {
  const { operator, parts, query } = request;
  const [id = ""] = parts;
  const path = pathOf(query);
  await service.act(operator, id, { name: "file_read", args: { path } });
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    const workspace = await files.openByInstance(id);
    try {
      const file = await workspace.read(path);
      yield* file.bytes(0, file.sizeBytes);
    } finally {
      workspace.release();
    }
  };
  const name = path.slice(path.lastIndexOf("/") + 1);
  return new Attachment({ name, type: "application/octet-stream", chunks: chunks() });
}

async function listOf(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<FileList> {
  const params = { path, recursive: false, includeHidden: true, maxEntries: MAX_ENTRIES };
  const listed = await sandbox.request("file.list", params, { timeoutMs: TIMEOUT_MS, signal });
  return { path: listed.path, entries: listed.entries.map(toEntry), truncated: listed.isTruncated };
}

const KINDS = { file: "file", directory: "directory", symlink: "link", other: "other" } as const;

function toEntry({ path, type, sizeBytes, modifiedAt }: GuestResult<"file.list">["entries"][number]): FileEntry {
  return { name: path.slice(path.lastIndexOf("/") + 1), kind: KINDS[type], sizeBytes, modifiedAt };
}

async function textOf(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<FileText> {
  const params = { path, encoding: "auto", maxBytes: MAX_TEXT_BYTES } as const;
  const read = await sandbox.request("file.read", params, { timeoutMs: TIMEOUT_MS, signal });
  const { sizeBytes, isTruncated, encoding, content } = read;
  return { path: read.path, sizeBytes, truncated: isTruncated, ...(encoding !== "base64" && { text: content }) };
}

function pathOf(query: URLSearchParams, fallback?: string): string {
  const path = query.get("path") || fallback;
  if (path !== undefined && path.length <= MAX_PATH_CHARS && !path.includes("\0")) return path;
  throw new OwlError("invalid_params", "path must name a file of the sandbox");
}
