import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ApprovalNow } from "./contract.ts";

type Change = ApprovalNow["change"];
type Arguments = Readonly<Record<string, unknown>>;

const MAX_BEFORE_BYTES = 65_536;
const READ_TIMEOUT_MS = 5000;

/** What a file would become: known for the two tools that say so in their arguments. */
export async function proposedChange(sandbox: Sandbox | undefined, tool: string, args: Arguments): Promise<Change> {
  const { path } = args;
  if (typeof path !== "string" || (tool !== "file_write" && tool !== "file_replace")) return undefined;
  const before = sandbox === undefined ? undefined : await textOf(sandbox, path);
  return tool === "file_write" ? written(path, before, args) : replaced(path, before, args);
}

function written(path: string, before: string | undefined, { content, mode, encoding }: Arguments): Change {
  if (typeof content !== "string" || encoding === "base64") return undefined;
  const after = mode === "append" ? `${before ?? ""}${content}` : content;
  return { path, ...(before !== undefined && { before }), after };
}

function replaced(path: string, before: string | undefined, args: Arguments): Change {
  const { old_text: oldText, new_text: newText, replace_all: all } = args;
  if (typeof oldText !== "string" || typeof newText !== "string") return undefined;
  if (before === undefined) return { path, before: oldText, after: newText };
  const after = all === true ? before.replaceAll(oldText, () => newText) : before.replace(oldText, () => newText);
  return { path, before, after };
}

async function textOf(sandbox: Sandbox, path: string): Promise<string | undefined> {
  const params = { path, encoding: "utf-8", maxBytes: MAX_BEFORE_BYTES } as const;
  // A file that is not there, or that is no text, has no text to compare with.
  const read = await sandbox.request("file.read", params, { timeoutMs: READ_TIMEOUT_MS }).catch(() => undefined);
  return read === undefined || read.isTruncated ? undefined : read.content;
}
