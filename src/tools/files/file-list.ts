import * as z from "zod";
import { defineSandboxTool, type SandboxTool } from "../sandbox-tool.ts";
import { askedPath } from "../workspace-path.ts";
import { FILE_TIMEOUT_MS } from "./file-time.ts";

const output = {
  path: z.string(),
  entries: z.array(
    z.object({
      path: z.string(),
      type: z.enum(["file", "directory", "symlink", "other"]),
      size_bytes: z.number(),
      modified_at: z.string(),
      link_target: z.string().optional(),
    }),
  ),
};

export function fileList(): SandboxTool {
  return defineSandboxTool({
    toolset: "files",
    title: "List files",
    description:
      "Lists a folder of the sandbox's workspace, with recursive: true everything below it, filtered by a glob such as **/*.py. Returns path, type, size and time of each entry. Changes nothing.",
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "workspace",
    input: {
      path: z.string().min(1).default(".").describe("Relative to the workspace, or absolute inside it."),
      recursive: z.boolean().default(false),
      glob: z.string().min(1).optional().describe("Only entries that match, such as *.csv."),
      include_hidden: z.boolean().default(false).describe("Names that start with a dot too."),
      max_entries: z.int().min(1).max(2000).default(200),
    },
    output,
    run: async (
      { sandbox, signal, limits },
      { path, recursive, glob, include_hidden: includeHidden, max_entries: maxEntries },
    ) => {
      const params = { path, recursive, ...(glob !== undefined && { glob }), includeHidden, maxEntries };
      const result = await sandbox.request("file.list", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
      const entries = result.entries.map((entry) => ({
        path: entry.path,
        type: entry.type,
        size_bytes: entry.sizeBytes,
        modified_at: entry.modifiedAt,
        ...(entry.linkTarget !== undefined && { link_target: entry.linkTarget }),
      }));
      return {
        summary: `${entries.length} ${entries.length === 1 ? "entry" : "entries"} in ${askedPath(path, limits)}${result.isTruncated ? ", more were left out" : ""}`,
        value: { path: result.path, entries, ...(result.isTruncated && { is_truncated: true }) },
      };
    },
  });
}
