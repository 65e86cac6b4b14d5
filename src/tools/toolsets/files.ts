import * as z from "zod";
import type { GuestResult } from "../../../contract/guest.ts";
import {
  defineSandboxTool,
  type Outcome,
  type SandboxTool,
  type ToolLimits,
  FILE_TIMEOUT_MS,
  toParams,
} from "../sandbox-tool.ts";
import { askedPath, sandboxUri } from "../workspace-files.ts";

export function fileTools(limits: ToolLimits): readonly SandboxTool[] {
  return [fileRead(limits), fileWrite(limits), fileList(), fileSearch(), fileReplace()];
}

const readOutput = {
  path: z.string(),
  encoding: z.enum(["utf-8", "latin1", "utf-16le", "base64"]),
  content: z.string(),
  size_bytes: z.number(),
  total_lines: z.number().optional(),
  start_line: z.number().optional(),
  end_line: z.number().optional(),
  offset: z
    .number()
    .optional()
    .describe("Of a part by bytes: where it starts. A part of a text starts with a whole character."),
  next_offset: z.number().optional().describe("Where the next part starts; not set at the end of the file."),
  uri: z
    .string()
    .optional()
    .describe("Set when there is more: the file as a resource, read in pages with resources/read."),
};

function fileRead(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "file_read",
    openSandboxName: "file.read",
    toolset: "files",
    title: "Read a file",
    description: `Reads a file of the sandbox's workspace (${limits.workspacePath}; relative paths start there). Text comes as it is, binary files as base64. Long files come in parts: use start_line and end_line for text, offset and length for bytes, and go on with next_offset. Changes nothing.`,
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "workspace",
    input: {
      path: z.string().min(1).describe("Relative to the workspace, or absolute inside it."),
      encoding: z
        .enum(["auto", "utf-8", "latin1", "utf-16le", "base64"])
        .default("auto")
        .describe("auto: UTF-8 text as it is, anything else as base64."),
      start_line: z.int().min(1).optional().describe("First line, counted from 1."),
      end_line: z.int().min(1).optional().describe("Last line, included."),
      offset: z.int().min(0).optional().describe("First byte, counted from 0."),
      length: z.int().min(1).optional().describe("How many bytes."),
    },
    output: readOutput,
    run: async ({ sandbox, signal }, input) => {
      // base64 makes four characters of three bytes.
      const params = { ...toParams(input), maxBytes: Math.floor(limits.maxResultChars * 0.6) };
      const result = await sandbox.request("file.read", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
      return readOutcome(result, askedPath(input.path, limits), sandbox.facts.id);
    },
  });
}

function readOutcome(result: GuestResult<"file.read">, asked: string, sandboxId: string): Outcome {
  const { path, sizeBytes, totalLines, startLine, endLine, offset, nextOffset, isTruncated } = result;
  return {
    summary: `${asked} (${sizeBytes} bytes${isTruncated ? ", cut" : ""})`,
    value: {
      path,
      encoding: result.encoding,
      content: result.content,
      size_bytes: sizeBytes,
      ...(totalLines !== undefined && { total_lines: totalLines }),
      ...(startLine !== undefined && { start_line: startLine }),
      ...(endLine !== undefined && { end_line: endLine }),
      ...(offset !== undefined && { offset }),
      ...(nextOffset !== undefined && { next_offset: nextOffset }),
      ...(isTruncated && { is_truncated: true, uri: sandboxUri(sandboxId, asked) }),
    },
  };
}

const writeOutput = {
  path: z.string(),
  bytes_written: z.number(),
  size_bytes: z.number(),
  created: z.boolean().describe("Whether the file is new."),
};

function fileWrite(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "file_write",
    openSandboxName: "file.write",
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
    output: writeOutput,
    run: async ({ sandbox, signal }, { permissions, ...input }) => {
      const params = { ...input, ...(permissions !== undefined && { permissions: Number.parseInt(permissions, 8) }) };
      const result = await sandbox.request("file.write", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
      return {
        summary: `${askedPath(input.path, limits)} (${result.bytesWritten} bytes ${result.created ? "to a new file" : "written"})`,
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

const listOutput = {
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

function fileList(): SandboxTool {
  return defineSandboxTool({
    name: "file_list",
    openSandboxName: "file.list",
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
    output: listOutput,
    run: async ({ sandbox, signal, limits }, input) => {
      const result = await sandbox.request("file.list", toParams(input), { timeoutMs: FILE_TIMEOUT_MS, signal });
      const entries = result.entries.map((entry) => ({
        path: entry.path,
        type: entry.type,
        size_bytes: entry.sizeBytes,
        modified_at: entry.modifiedAt,
        ...(entry.linkTarget !== undefined && { link_target: entry.linkTarget }),
      }));
      return {
        summary: `${entries.length} ${entries.length === 1 ? "entry" : "entries"} in ${askedPath(input.path, limits)}${result.isTruncated ? ", more were left out" : ""}`,
        value: { path: result.path, entries, ...(result.isTruncated && { is_truncated: true }) },
      };
    },
  });
}

const searchOutput = {
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

function fileSearch(): SandboxTool {
  return defineSandboxTool({
    name: "file_search",
    openSandboxName: "file.search",
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
    output: searchOutput,
    run: async ({ sandbox, signal }, { regex, ...input }) => {
      const params = { ...toParams(input), isRegex: regex };
      const result = await sandbox.request("file.search", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
      const matches = result.matches.map(({ path, line, text, before, after }) => ({
        path,
        line,
        text,
        ...(before.length > 0 && { before }),
        ...(after.length > 0 && { after }),
      }));
      return {
        summary: searchSummary(result, input.include_hidden),
        value: {
          matches,
          ...(result.filesSearched !== undefined && { files_searched: result.filesSearched }),
          ...(result.isTruncated && { is_truncated: true }),
        },
      };
    },
  });
}

function searchSummary({ matches, filesSearched }: GuestResult<"file.search">, includesHidden: boolean): string {
  const found = `${matches.length} ${matches.length === 1 ? "match" : "matches"}`;
  if (filesSearched === undefined) return `${found}, more were left out`;
  const files = `${filesSearched} ${filesSearched === 1 ? "file" : "files"}`;
  const isEmpty = matches.length === 0 && !includesHidden;
  return `${found} in ${files}${isEmpty ? "; names that start with a dot only with include_hidden: true" : ""}`;
}

const replaceOutput = { path: z.string(), replacements: z.number(), size_bytes: z.number() };

function fileReplace(): SandboxTool {
  return defineSandboxTool({
    name: "file_replace",
    openSandboxName: "file.replace",
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
    output: replaceOutput,
    run: async ({ sandbox, signal, limits }, input) => {
      const result = await sandbox.request("file.replace", toParams(input), { timeoutMs: FILE_TIMEOUT_MS, signal });
      return {
        summary: `${result.replacements} ${result.replacements === 1 ? "place" : "places"} in ${askedPath(input.path, limits)}`,
        value: { path: result.path, replacements: result.replacements, size_bytes: result.sizeBytes },
      };
    },
  });
}
