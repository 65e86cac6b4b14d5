import type { GuestResult } from "../../../contract/guest.ts";
import * as z from "zod";
import { defineSandboxTool, type SandboxTool } from "../sandbox-tool.ts";
import { FILE_TIMEOUT_MS } from "./file-time.ts";

const output = {
  matches: z.array(
    z.object({
      path: z.string(),
      line: z.number(),
      text: z.string(),
      before: z.array(z.string()).optional(),
      after: z.array(z.string()).optional(),
    }),
  ),
  files_searched: z.number().optional().describe("With and without matches; not set when the search stopped early."),
};

export function fileSearch(): SandboxTool {
  return defineSandboxTool({
    toolset: "files",
    title: "Search in files",
    description:
      "Searches the text files of the sandbox's workspace for a regular expression (or, with regex: false, for exact text). Returns path, line number and line of each match, with context lines if asked. Names that start with a dot are left out unless include_hidden is true. Changes nothing.",
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "workspace",
    input: {
      pattern: z.string().min(1),
      regex: z.boolean().default(true).describe("false: the pattern is exact text."),
      path: z.string().min(1).default(".").describe("File or folder to search, inside the workspace."),
      glob: z.string().min(1).optional().describe("Only files that match, such as *.py."),
      ignore_case: z.boolean().default(false),
      include_hidden: z.boolean().default(false).describe("Search files and folders whose names start with a dot too."),
      context_lines: z.int().min(0).max(20).default(0),
      max_matches: z.int().min(1).max(1000).default(100),
    },
    output,
    run: async ({ sandbox, signal }, input) => {
      const params = {
        pattern: input.pattern,
        isRegex: input.regex,
        path: input.path,
        ...(input.glob !== undefined && { glob: input.glob }),
        ignoreCase: input.ignore_case,
        includeHidden: input.include_hidden,
        contextLines: input.context_lines,
        maxMatches: input.max_matches,
      };
      const result = await sandbox.request("file.search", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
      const matches = result.matches.map(({ path, line, text, before, after }) => ({
        path,
        line,
        text,
        ...(before.length > 0 && { before }),
        ...(after.length > 0 && { after }),
      }));
      return {
        summary: summaryOf(result, input.include_hidden),
        value: {
          matches,
          ...(result.filesSearched !== undefined && { files_searched: result.filesSearched }),
          ...(result.isTruncated && { is_truncated: true }),
        },
      };
    },
  });
}

function summaryOf({ matches, filesSearched }: GuestResult<"file.search">, includesHidden: boolean): string {
  const found = `${matches.length} ${matches.length === 1 ? "match" : "matches"}`;
  if (filesSearched === undefined) return `${found}, more were left out`;
  const files = `${filesSearched} ${filesSearched === 1 ? "file" : "files"}`;
  const isEmpty = matches.length === 0 && !includesHidden;
  return `${found} in ${files}${isEmpty ? "; names that start with a dot only with include_hidden: true" : ""}`;
}
