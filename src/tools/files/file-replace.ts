import * as z from "zod";
import { defineSandboxTool, type SandboxTool } from "../sandbox-tool.ts";
import { askedPath } from "../workspace-path.ts";
import { FILE_TIMEOUT_MS } from "./file-time.ts";

const output = { path: z.string(), replacements: z.number(), size_bytes: z.number() };

export function fileReplace(): SandboxTool {
  return defineSandboxTool({
    toolset: "files",
    title: "Replace text in a file",
    description:
      "Replaces old_text by new_text in a text file of the sandbox's workspace. old_text must match exactly, spaces and line breaks included, and exactly once; otherwise nothing is changed and the failure says why. With replace_all: true every match is replaced.",
    effect: { readOnly: false, destructive: true, idempotent: false, openWorld: false },
    scope: "workspace",
    input: {
      path: z.string().min(1).describe("Relative to the workspace, or absolute inside it."),
      old_text: z.string().min(1).describe("As file_read shows it, with enough around it to be the only match."),
      new_text: z.string(),
      replace_all: z.boolean().default(false),
    },
    output,
    run: async (
      { sandbox, signal, limits },
      { path, old_text: oldText, new_text: newText, replace_all: replaceAll },
    ) => {
      const params = { path, oldText, newText, replaceAll };
      const result = await sandbox.request("file.replace", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
      return {
        summary: `${result.replacements} ${result.replacements === 1 ? "place" : "places"} in ${askedPath(path, limits)}`,
        value: { path: result.path, replacements: result.replacements, size_bytes: result.sizeBytes },
      };
    },
  });
}
