import { isOwlError } from "../errors/owl-error.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ApprovalNow } from "./contract.ts";
import type { MissingText } from "./contract-files.ts";

type Change = ApprovalNow["change"];
type Arguments = Readonly<Record<string, unknown>>;
/** What is in a file; nothing where there is none; or why that is not known. */
type Before = { readonly text: string } | { readonly missing: MissingText } | undefined;

const MAX_BEFORE_BYTES = 65_536;
const READ_TIMEOUT_MS = 5000;

/** What a file would become: known for the two tools that say so in their arguments. */
export async function proposedChange(
  sandbox: Pick<Sandbox, "request"> | undefined,
  tool: string,
  args: Arguments,
): Promise<Change> {
  const { path } = args;
  if (typeof path !== "string" || (tool !== "file_write" && tool !== "file_replace")) return undefined;
  const before: Before = sandbox === undefined ? { missing: "unknown" } : await beforeOf(sandbox, path);
  return tool === "file_write" ? written(path, before, args) : replaced(path, before, args);
}

function written(path: string, before: Before, { content, mode, encoding }: Arguments): Change {
  if (typeof content !== "string" || encoding === "base64") return undefined;
  if (before === undefined) return { path, after: content };
  const isAppended = mode === "append";
  if ("missing" in before)
    return { path, beforeMissing: before.missing, after: content, ...(isAppended && { isPart: true }) };
  return { path, before: before.text, after: isAppended ? `${before.text}${content}` : content };
}

function replaced(path: string, before: Before, args: Arguments): Change {
  const { old_text: oldText, new_text: newText, replace_all: all } = args;
  if (typeof oldText !== "string" || typeof newText !== "string") return undefined;
  if (before === undefined || "missing" in before)
    return { path, before: oldText, beforeMissing: before?.missing ?? "gone", after: newText, isPart: true };
  const { text } = before;
  const after = all === true ? text.replaceAll(oldText, () => newText) : text.replace(oldText, () => newText);
  return { path, before: text, after };
}

async function beforeOf(sandbox: Pick<Sandbox, "request">, path: string): Promise<Before> {
  const params = { path, encoding: "auto", maxBytes: MAX_BEFORE_BYTES } as const;
  try {
    const read = await sandbox.request("file.read", params, { timeoutMs: READ_TIMEOUT_MS });
    if (read.isTruncated) return { missing: "large" };
    return read.encoding === "base64" ? { missing: "binary" } : { text: read.content };
  } catch (error) {
    const isNew = isOwlError(error) && error.facts["reason"] === "not_found";
    return isNew ? undefined : { missing: "gone" };
  }
}
