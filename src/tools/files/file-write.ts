import * as z from "zod";
import { defineSandboxTool, type SandboxTool } from "../sandbox-tool.ts";
import type { ToolLimits } from "../tool-services.ts";
import { askedPath } from "../workspace-path.ts";
import { FILE_TIMEOUT_MS } from "./file-time.ts";

const output = {
  path: z.string(),
  bytes_written: z.number(),
  size_bytes: z.number(),
  created: z.boolean().describe("Whether the file is new."),
};

export function fileWrite(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "files",
    title: "Write a file",
    description: `Writes a file in the sandbox's workspace (${limits.workspacePath}; relative paths start there) and makes missing folders. A file that exists is replaced whole and at once, unless mode says otherwise: append adds to its end, create refuses to replace. The file stays until the sandbox ends.`,
    effect: { readOnly: false, destructive: true, idempotent: false, openWorld: false },
    scope: "workspace",
    input: {
      path: z.string().min(1).describe("Relative to the workspace, or absolute inside it."),
      content: z.string().describe("The text, or base64 with encoding: base64."),
      encoding: z.enum(["utf-8", "base64"]).default("utf-8"),
      mode: z.enum(["overwrite", "append", "create"]).default("overwrite"),
      permissions: z
        .string()
        .regex(/^[0-7]{3,4}$/, "must be octal digits such as 755")
        .optional()
        .describe("As in chmod, such as 755."),
    },
    output,
    run: async ({ sandbox, signal }, { path, content, encoding, mode, permissions }) => {
      const params = {
        path,
        content,
        encoding,
        mode,
        ...(permissions !== undefined && { permissions: Number.parseInt(permissions, 8) }),
      };
      const result = await sandbox.request("file.write", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
      return {
        summary: `${askedPath(path, limits)} (${result.bytesWritten} bytes ${result.created ? "to a new file" : "written"})`,
        value: {
          path: result.path,
          bytes_written: result.bytesWritten,
          size_bytes: result.sizeBytes,
          created: result.created,
        },
      };
    },
  });
}
