import { z } from "zod";
import { browserResultSchemas } from "./browser-schemas.ts";

/** What the host accepts from a guest. Anything else ends the sandbox: user code can take the guest over. */

const MAX_TEXT = 8 * 1024 * 1024;
const MAX_LIST = 100_000;

const text = (): z.ZodString => z.string().max(MAX_TEXT);
const count = (): z.ZodNumber => z.number().nonnegative();
const exitCode = z.int().nullable();
const signalName = z.string().max(32).nullable();

const boundedText = z.object({
  text: text(),
  totalChars: count(),
  file: z.string().max(4096).optional(),
  keptBytes: count().optional(),
});

const processes = z.array(z.object({ pid: z.int(), command: z.string().max(4096) })).max(10_000);

const hello = z.object({
  version: z.string().max(64),
  languages: z.array(z.enum(["python", "node"])).max(8),
});

const nothing = z.object({});

const codeRun = z.object({
  status: z.enum(["ok", "error", "timeout", "cancelled", "crashed"]),
  stdout: boundedText,
  stderr: boundedText,
  value: z.object({ text: text(), html: text().optional(), file: z.string().max(4096).optional() }).optional(),
  error: z.object({ name: text(), message: text(), traceback: text() }).optional(),
  pictures: z
    .array(
      z.object({
        mimeType: z.enum(["image/png", "image/jpeg", "image/svg+xml"]),
        data: text().regex(/^[A-Za-z0-9+/]*={0,2}$/),
      }),
    )
    .max(1000),
  durationMs: count(),
  interpreterRestarted: z.boolean(),
  leftRunning: processes,
  earlierOutput: text().optional(),
});

const shellExec = z.object({
  status: z.enum(["exited", "timeout", "cancelled", "running"]),
  exitCode,
  signal: signalName,
  stdout: boundedText,
  stderr: boundedText,
  durationMs: count(),
  processId: z.string().max(128).optional(),
  leftRunning: processes,
});

const shellOutput = z.object({
  text: text(),
  cursor: count(),
  skippedChars: count(),
  isRunning: z.boolean(),
  exitCode,
  signal: signalName,
});

const path = z.string().max(8192);

const fileRead = z.object({
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

const fileWrite = z.object({ path, bytesWritten: count(), sizeBytes: count(), created: z.boolean() });

const fileList = z.object({
  path,
  entries: z
    .array(
      z.object({
        path,
        type: z.enum(["file", "directory", "symlink", "other"]),
        sizeBytes: count(),
        modifiedAt: z.string().max(64),
        changedAtMs: count(),
        linkTarget: path.optional(),
      }),
    )
    .max(MAX_LIST),
  isTruncated: z.boolean(),
});

const fileTexts = z.object({
  texts: z
    .array(z.union([z.object({ text: text() }), z.object({ missing: z.enum(["large", "binary", "gone"]) })]))
    .max(MAX_LIST),
});

const fileSearch = z.object({
  matches: z
    .array(
      z.object({
        path,
        line: count(),
        text: text(),
        before: z.array(text()).max(100),
        after: z.array(text()).max(100),
      }),
    )
    .max(MAX_LIST),
  filesSearched: count().optional(),
  isTruncated: z.boolean(),
});

const fileReplace = z.object({ path, replacements: count(), sizeBytes: count() });

const terminalRun = z.object({ exitCode });

const processList = z.object({
  processes: z
    .array(
      z.object({
        pid: z.int(),
        parent: z.int(),
        command: z.string().max(4096),
        cpuMs: count(),
        ageMs: count(),
        memoryBytes: count(),
      }),
    )
    .max(10_000),
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

export const outputSchema = z.object({
  callId: z.string().max(64),
  stream: z.enum(["stdout", "stderr"]),
  text: text(),
});

export const failureSchema = z.object({
  kind: z.string().max(64),
  message: z.string(),
  hint: z.string(),
});
