import type { GuestResult } from "../../../contract/guest.ts";
import * as z from "zod";
import { defineSandboxTool, type Outcome, type SandboxTool } from "../sandbox-tool.ts";
import { sandboxUri } from "../sandbox-uri.ts";
import type { ToolLimits } from "../tool-services.ts";
import { askedPath } from "../workspace-path.ts";
import { FILE_TIMEOUT_MS } from "./file-time.ts";

const output = {
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

export function fileRead(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
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
    output,
    run: async ({ sandbox, signal }, input) => {
      const params = {
        path: input.path,
        encoding: input.encoding,
        ...(input.start_line !== undefined && { startLine: input.start_line }),
        ...(input.end_line !== undefined && { endLine: input.end_line }),
        ...(input.offset !== undefined && { offset: input.offset }),
        ...(input.length !== undefined && { length: input.length }),
        // base64 makes four characters of three bytes.
        maxBytes: Math.floor(limits.maxResultChars * 0.6),
      };
      const result = await sandbox.request("file.read", params, { timeoutMs: FILE_TIMEOUT_MS, signal });
      return toOutcome(result, askedPath(input.path, limits), sandbox.facts.id);
    },
  });
}

function toOutcome(result: GuestResult<"file.read">, asked: string, sandboxId: string): Outcome {
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
