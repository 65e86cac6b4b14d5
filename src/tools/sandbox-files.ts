import type { CallContext } from "../capability/context.ts";
import type { ResourceContents } from "../capability/content.ts";
import type { ResourceDefinition } from "../capability/define.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { type ToolServices, FILE_TIMEOUT_MS } from "./sandbox-tool.ts";
import { workspaceRelative, sandboxUri } from "./workspace-files.ts";

const PAGE_BYTES = 65_536;
const MAX_PAGE_BYTES = 1024 * 1024;
/** Where the guest stores outputs that were too long for a result. */
const OUTPUT_FILE = /^\/tmp\/\.owlclaw-output\/[A-Za-z0-9_-]+\.txt$/;

/** Files of a sandbox as resources, in pages, for the sandbox's owner only. */
export function sandboxFiles(services: ToolServices): ResourceDefinition {
  return {
    uri: "sandbox://{session_id}/{+path}{?offset,length}",
    name: "sandbox-file",
    normalize: ({ path = "", ...others }) => ({
      ...others,
      path: workspaceRelative(path, services.limits.workspacePath),
    }),
    sameAs: { name: "file_read", names: ["file_read", "file.read"], scope: "workspace", toArgs },
    title: "File of a sandbox",
    description: `A file in the workspace of one of your sandboxes, or the whole of an output that was cut. Pages of ${PAGE_BYTES} bytes: go on with ?offset=, choose another size with &length=.`,
    read: async (uri, variables, context) => {
      const { session_id: id = "", path = "" } = variables;
      const page = {
        offset: toNumber(variables["offset"], 0, Number.MAX_SAFE_INTEGER),
        length: toNumber(variables["length"], PAGE_BYTES, MAX_PAGE_BYTES),
      };
      const sandboxUse = await openForReading(services, context, id);
      context.meter?.(sandboxUse.sandbox);
      try {
        return [toContents(uri, { id, path, ...page }, await readPage(sandboxUse.sandbox, path, { ...page, context }))];
      } catch (error) {
        if (error instanceof OwlError && error.kind === "tool_failure") throw notFound(error.message);
        throw error;
      } finally {
        sandboxUse.release();
      }
    },
  };
}

/** The equivalent arguments of `file_read`, for policy rules. */
function toArgs({ offset, length, ...named }: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  return {
    ...named,
    ...(offset !== undefined && { offset: toNumber(offset, 0, Number.MAX_SAFE_INTEGER) }),
    ...(length !== undefined && { length: toNumber(length, PAGE_BYTES, MAX_PAGE_BYTES) }),
  };
}

interface Page {
  readonly bytes: Buffer;
  readonly sizeBytes: number;
}

async function openForReading({ sandboxes }: ToolServices, context: CallContext, id: string) {
  try {
    return await sandboxes.open(context, id);
  } catch (error) {
    if (error instanceof OwlError && error.kind === "session_not_found") throw notFound(error.message);
    throw error;
  }
}

interface PageRequest {
  readonly offset: number;
  readonly length: number;
  readonly context: CallContext;
}

async function readPage(sandbox: Sandbox, path: string, { offset, length, context }: PageRequest): Promise<Page> {
  const { signal } = context;
  if (OUTPUT_FILE.test(path)) return readOutput(sandbox, path, { offset, length, context });
  const params = { path, encoding: "base64", offset, length, maxBytes: length } as const;
  const { content, sizeBytes } = await sandbox.request("file.read", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
  return { bytes: Buffer.from(content, "base64"), sizeBytes };
}

/** Outputs are outside the workspace, which the file tools cannot read. The path has been checked and needs no quotes. */
async function readOutput(sandbox: Sandbox, path: string, { offset, length, context }: PageRequest): Promise<Page> {
  const command = `stat -c %s ${path} && tail -c +${offset + 1} ${path} | head -c ${length} | base64 -w 0`;
  const params = { command, timeoutMs: FILE_TIMEOUT_MS, maxOutputChars: 4 * MAX_PAGE_BYTES, background: false };
  const { exitCode, stdout } = await sandbox.runTimed("shell.exec", params, { signal: context.signal });
  const [size = "", base64 = ""] = stdout.text.split("\n");
  if (exitCode !== 0)
    throw notFound(`${path} is no longer kept: outputs have 256 MiB together, and the oldest go first`);
  return { bytes: Buffer.from(base64, "base64"), sizeBytes: Number(size) };
}

interface Asked {
  readonly id: string;
  readonly path: string;
  readonly offset: number;
  readonly length: number;
}

function toContents(uri: string, { id, path, offset, length }: Asked, page: Page): ResourceContents {
  const text = decodeText(page.bytes);
  const readBytes = text === undefined ? page.bytes.length : text.byteLength;
  const end = offset + readBytes;
  const next =
    end < page.sizeBytes && readBytes > 0 ? `${sandboxUri(id, path)}?offset=${end}&length=${length}` : undefined;
  const _meta = {
    "owlclaw/page": { offset, bytes: readBytes, size_bytes: page.sizeBytes, ...(next !== undefined && { next }) },
  };
  if (text === undefined)
    return { uri, mimeType: "application/octet-stream", blob: page.bytes.toString("base64"), _meta };
  return { uri, mimeType: "text/plain", text: text.text, _meta };
}

/** The bytes as text if they are UTF-8. A character that is cut at the page's end is left for the next page. */
function decodeText(bytes: Buffer): { readonly text: string; readonly byteLength: number } | undefined {
  for (let cut = 0; cut <= Math.min(3, bytes.length); cut += 1) {
    const whole = bytes.subarray(0, bytes.length - cut);
    try {
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(whole);
      if (text.includes("\0") || (text === "" && bytes.length > 0)) return undefined;
      return { text, byteLength: whole.length };
    } catch {
      // The last character may be cut.
    }
  }
  return undefined;
}

function toNumber(text: string | undefined, fallback: number, maximum: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!/^[0-9]{1,15}$/.test(text) || value > maximum || (fallback > 0 && value === 0))
    throw new OwlError("invalid_params", `offset and length are whole numbers, length at most ${MAX_PAGE_BYTES}`);
  return value;
}

function notFound(message: string): OwlError {
  return new OwlError("resource_not_found", message, {
    hint: "check the path with file_list, and the session_id with sandbox_list",
  });
}
