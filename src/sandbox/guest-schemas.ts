import { z } from "zod";
import { browserResultSchemas } from "./browser-schemas.ts";
import { list } from "./guest-list.ts";

/** What the host accepts from a guest. Anything else ends the sandbox: user code can take the guest over. */

const MAX_TEXT = 8 * 1024 * 1024;
const MAX_LIST = 10_000;
/** `STREAMED_CHARS_MAX` of the guest. */
const MAX_STREAMED_TEXT = 262_144;

const text = (): z.ZodString => z.string().max(MAX_TEXT);
const count = (): z.ZodNumber => z.number().nonnegative();
const exitCode = z.int().nullable();
/** They stand in the first line of a result. */
const signalName = z
  .string()
  .regex(/^[A-Za-z0-9+ -]{1,32}$/)
  .nullable();
const processId = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/);

const boundedText = z.strictObject({
  text: text(),
  totalChars: count(),
  file: z.string().max(4096).optional(),
  keptBytes: count().optional(),
});

const processes = list(z.strictObject({ pid: z.int(), command: z.string().max(4096) }), 10_000);

const hello = z.strictObject({
  version: z.string().max(64),
  languages: list(z.enum(["python", "node"]), 8),
  diagnostics: list(z.string().max(4096), 100).optional(),
});

const nothing = z.strictObject({});

const codeRun = z.strictObject({
  status: z.enum(["ok", "error", "timeout", "cancelled", "crashed"]),
  stdout: boundedText,
  stderr: boundedText,
  value: z.strictObject({ text: text(), html: text().optional(), file: z.string().max(4096).optional() }).optional(),
  error: z.strictObject({ name: text(), message: text(), traceback: text() }).optional(),
  pictures: list(
    z.strictObject({
      mimeType: z.enum(["image/png", "image/jpeg", "image/svg+xml"]),
      data: text().regex(/^[A-Za-z0-9+/]*={0,2}$/),
    }),
    1000,
  ),
  durationMs: count(),
  interpreterRestarted: z.boolean(),
  leftRunning: processes,
  earlierOutput: text().optional(),
});

const shellExec = z.strictObject({
  status: z.enum(["exited", "timeout", "cancelled", "running"]),
  exitCode,
  signal: signalName,
  stdout: boundedText,
  stderr: boundedText,
  durationMs: count(),
  processId: processId.optional(),
  leftRunning: processes,
});

const shellOutput = z.strictObject({
  text: text(),
  cursor: count(),
  skippedChars: count(),
  isRunning: z.boolean(),
  exitCode,
  signal: signalName,
});

const path = z.string().max(8192);

const fileRead = z.strictObject({
  path,
  encoding: z.enum(["utf-8", "latin1", "utf-16le", "base64"]),
  content: text(),
  sizeBytes: count(),
  totalLines: count().optional(),
  startLine: count().optional(),
  endLine: count().optional(),
  offset: count().optional(),
  nextOffset: count().optional(),
  isTruncated: z.boolean(),
});

const fileWrite = z.strictObject({ path, bytesWritten: count(), sizeBytes: count(), created: z.boolean() });

const fileList = z.strictObject({
  path,
  entries: list(
    z.strictObject({
      path,
      type: z.enum(["file", "directory", "symlink", "other"]),
      sizeBytes: count(),
      modifiedAt: z.string().max(64),
      changedAtMs: count(),
      linkTarget: path.optional(),
    }),
    MAX_LIST,
  ),
  isTruncated: z.boolean(),
});

const fileTexts = z.strictObject({
  texts: list(
    z.union([z.strictObject({ text: text() }), z.strictObject({ missing: z.enum(["large", "binary", "gone"]) })]),
    MAX_LIST,
  ),
});

const fileSearch = z.strictObject({
  matches: list(
    z.strictObject({
      path,
      line: count(),
      text: text(),
      before: list(text(), 100),
      after: list(text(), 100),
    }),
    MAX_LIST,
  ),
  filesSearched: count().optional(),
  isTruncated: z.boolean(),
});

const fileReplace = z.strictObject({ path, replacements: count(), sizeBytes: count() });

const terminalRun = z.strictObject({ exitCode });

const processList = z.strictObject({
  processes: list(
    z.strictObject({
      pid: z.int(),
      parent: z.int(),
      command: z.string().max(4096),
      cpuMs: count(),
      ageMs: count(),
      memoryBytes: count(),
    }),
    10_000,
  ),
});

export const resultSchemas = {
  "guest.hello": hello,
  "code.warm": nothing,
  "code.run": codeRun,
  "shell.exec": shellExec,
  "shell.output": shellOutput,
  "shell.kill": shellOutput,
  "file.read": fileRead,
  "file.write": fileWrite,
  "file.list": fileList,
  "file.texts": fileTexts,
  "file.search": fileSearch,
  "file.replace": fileReplace,
  "terminal.run": terminalRun,
  "terminal.input": nothing,
  "terminal.resize": nothing,
  "process.list": processList,
  "process.kill": nothing,
  ...browserResultSchemas,
} as const;

export const outputSchema = z.strictObject({
  callId: z.string().max(64),
  stream: z.enum(["stdout", "stderr"]),
  text: z.string().max(MAX_STREAMED_TEXT),
});

export const failureSchema = z.strictObject({
  kind: z.string().max(64),
  message: text(),
  hint: text(),
});
