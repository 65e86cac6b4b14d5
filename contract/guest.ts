import { z } from "zod";
import { base64, count, line, list, path, text } from "./bounded-schemas.ts";
import { type BrowserFailureKind, type BrowserParams, browserResultSchemas } from "./guest-browser.ts";

/**
 * What server and guest say to each other. The guest trusts the server and imports only the types. The server checks every
 * result once, against the schemas here: user code can take the guest over. A result that does not match ends the instance.
 */

export type Language = "python" | "node";

/** How bytes become text. */
export type TextEncoding = "utf-8" | "latin1" | "utf-16le";

interface CallLimits {
  /** Output is sent under this id while the call runs. */
  readonly callId: string;
  readonly timeoutMs: number;
  /** Of stdout and of stderr. Of a longer one head and tail come back, and a file in the sandbox has the whole. */
  readonly maxOutputChars: number;
}

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** Every method with its parameters. Any request may also carry `traceparent`: its result then has `timings`. */
export interface GuestParams extends BrowserParams {
  readonly "guest.hello": Record<string, never>;
  /** Starts an interpreter ahead of its first use, with modules imported. */
  readonly "code.warm": { readonly language: Language; readonly preload: readonly string[] };
  readonly "code.run": CallLimits & { readonly language: Language; readonly code: string };
  readonly "shell.exec": CallLimits & {
    readonly command: string;
    /** Inside the workspace; default: the workspace itself. */
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly stdin?: string;
    readonly background: boolean;
  };
  readonly "shell.output": {
    readonly processId: string;
    /** From the last answer; 0 at first. */
    readonly cursor: number;
    readonly maxChars: number;
    /** How long to wait for new output. */
    readonly waitMs: number;
  };
  readonly "shell.kill": { readonly processId: string; readonly signal: "SIGTERM" | "SIGKILL" | "SIGINT" };
  readonly "file.read": {
    readonly path: string;
    readonly encoding: TextEncoding | "base64" | "auto";
    /** 1-based, inclusive; for text. */
    readonly startLine?: number;
    readonly endLine?: number;
    /** In bytes. */
    readonly offset?: number;
    readonly length?: number;
    readonly maxBytes: number;
  };
  readonly "file.write": {
    readonly path: string;
    readonly content: string;
    readonly encoding: "utf-8" | "base64";
    readonly mode: "overwrite" | "append" | "create";
    /** As in chmod, 0o644. */
    readonly permissions?: number;
  };
  readonly "file.list": {
    readonly path: string;
    readonly recursive: boolean;
    readonly glob?: string;
    readonly includeHidden: boolean;
    readonly maxEntries: number;
  };
  /** `maxBytes`: of each file; a larger one is not read. */
  readonly "file.texts": { readonly paths: readonly string[]; readonly maxBytes: number };
  readonly "file.search": {
    readonly pattern: string;
    readonly isRegex: boolean;
    readonly path: string;
    readonly glob?: string;
    readonly ignoreCase: boolean;
    readonly includeHidden: boolean;
    readonly contextLines: number;
    readonly maxMatches: number;
  };
  readonly "file.replace": {
    readonly path: string;
    readonly oldText: string;
    readonly newText: string;
    readonly replaceAll: boolean;
  };
  /** An operator's shell. It answers when the shell has ended; what the shell shows is sent as output of `callId`. */
  readonly "terminal.run": TerminalSize & { readonly callId: string };
  readonly "terminal.input": { readonly callId: string; readonly text: string };
  readonly "terminal.resize": TerminalSize & { readonly callId: string };
  readonly "process.list": Record<string, never>;
  readonly "process.kill": { readonly pid: number; readonly signal: "SIGTERM" | "SIGKILL" };
}

const MAX_LIST = 10_000;
/** The guest sends at most as much in one notification: `guest/output/output-batches.ts`. */
const MAX_STREAMED_CHARS = 262_144;
const MAX_MS = 86_400_000;

const nothing = z.strictObject({});
const exitCode = z.int().nullable();
/** It becomes part of the first line of a result. */
const signalName = z
  .string()
  .regex(/^[A-Za-z0-9+ -]{1,32}$/)
  .nullable();

const boundedText = z.strictObject({
  text: text(),
  totalChars: count(),
  /** Path inside the sandbox of the whole text, below `/tmp/.owlclaw-output`; absent when nothing was cut. */
  file: line().optional(),
  /** How many bytes are in the file; absent when it has everything. */
  keptBytes: count().optional(),
});

const processInfo = z.strictObject({ pid: z.int(), command: line() });

const codeError = z.strictObject({
  name: text(),
  message: text(),
  /** Shows lines of the user's code only. */
  traceback: text(),
});

const picture = z.strictObject({ mimeType: z.enum(["image/png", "image/jpeg", "image/svg+xml"]), data: base64() });

const codeRun = z.strictObject({
  status: z.enum(["ok", "error", "timeout", "cancelled", "crashed"]),
  stdout: boundedText,
  stderr: boundedText,
  /** The last expression's value; `html` where the value has such a form (pandas), and in `file` as well. */
  value: z.strictObject({ text: text(), html: text().optional(), file: line().optional() }).optional(),
  error: codeError.optional(),
  pictures: list(picture, 1000),
  durationMs: count(),
  /** The interpreter was started again after a time-out, a cancellation or a crash: variables are gone. */
  interpreterRestarted: z.boolean(),
  /** Processes that the code started and that still run. */
  leftRunning: list(processInfo, MAX_LIST),
  /** What threads, timers and processes of earlier runs printed since the last one. */
  earlierOutput: text().optional(),
});

const shellExec = z.strictObject({
  status: z.enum(["exited", "timeout", "cancelled", "running"]),
  exitCode,
  signal: signalName,
  stdout: boundedText,
  stderr: boundedText,
  durationMs: count(),
  /** For `shell.output` and `shell.kill`; present when it runs in the background. */
  processId: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,128}$/)
    .optional(),
  leftRunning: list(processInfo, MAX_LIST),
});

const shellOutput = z.strictObject({
  /** stdout and stderr in the order in which they came. */
  text: text(),
  cursor: count(),
  /** Characters between the requested cursor and the text that are no longer kept. */
  skippedChars: count(),
  isRunning: z.boolean(),
  exitCode,
  signal: signalName,
});

const fileRead = z.strictObject({
  path: path(),
  encoding: z.enum(["utf-8", "latin1", "utf-16le", "base64"]),
  content: text(),
  sizeBytes: count(),
  totalLines: count().optional(),
  startLine: count().optional(),
  endLine: count().optional(),
  /** Of a part by bytes: where its first character starts, and where the next part does; absent at the file's end. */
  offset: count().optional(),
  nextOffset: count().optional(),
  isTruncated: z.boolean(),
});

const fileEntry = z.strictObject({
  path: path(),
  type: z.enum(["file", "directory", "symlink", "other"]),
  sizeBytes: count(),
  modifiedAt: z.string().max(64),
  /** When it was last written, renamed or had its permissions changed; programs cannot set it. */
  changedAtMs: count(),
  linkTarget: path().optional(),
});

/** A text, or why there is none. */
const fileText = z.union([
  z.strictObject({ text: text() }),
  z.strictObject({ missing: z.enum(["large", "binary", "gone"]) }),
]);

const fileMatch = z.strictObject({
  path: path(),
  line: count(),
  text: text(),
  before: list(text(), 100),
  after: list(text(), 100),
});

const listedProcess = processInfo.extend({
  parent: z.int(),
  cpuMs: count(),
  ageMs: count(),
  memoryBytes: count(),
});

export const resultSchemas = {
  "guest.hello": z.strictObject({
    version: z.string().max(64),
    languages: list(z.enum(["python", "node"]), 8),
    /** Problems inside, for the log. */
    diagnostics: list(line(), 100).optional(),
  }),
  "code.warm": nothing,
  "code.run": codeRun,
  "shell.exec": shellExec,
  "shell.output": shellOutput,
  "shell.kill": shellOutput,
  "file.read": fileRead,
  "file.write": z.strictObject({ path: path(), bytesWritten: count(), sizeBytes: count(), created: z.boolean() }),
  "file.list": z.strictObject({ path: path(), entries: list(fileEntry, MAX_LIST), isTruncated: z.boolean() }),
  /** In the order of the paths. */
  "file.texts": z.strictObject({ texts: list(fileText, MAX_LIST) }),
  "file.search": z.strictObject({
    matches: list(fileMatch, MAX_LIST),
    /** With and without matches; absent when the search stopped early. */
    filesSearched: count().optional(),
    isTruncated: z.boolean(),
  }),
  "file.replace": z.strictObject({ path: path(), replacements: count(), sizeBytes: count() }),
  "terminal.run": z.strictObject({ exitCode }),
  "terminal.input": nothing,
  "terminal.resize": nothing,
  "process.list": z.strictObject({ processes: list(listedProcess, MAX_LIST) }),
  "process.kill": nothing,
  ...browserResultSchemas,
} as const satisfies Record<keyof GuestParams, z.ZodType>;

export const outputSchema = z.strictObject({
  callId: z.string().max(64),
  stream: z.enum(["stdout", "stderr"]),
  text: z.string().max(MAX_STREAMED_CHARS),
});

export const failureSchema = z.strictObject({
  kind: z.string().max(64),
  message: text(),
  /** What to do next, in the words of a tool result. */
  hint: text(),
});

/** In the result of a request with `traceparent`. The guest has no network: the server puts them into the trace. */
const timing = z.strictObject({
  /** The whole request; waiting for earlier code; starting an interpreter; the code, as its interpreter measured it. */
  name: z.enum(["request", "queue", "interpreter.start", "interpreter.run"]),
  /** Since the request arrived. */
  startMs: z.number().min(0).max(MAX_MS),
  durationMs: z.number().min(0).max(MAX_MS),
});
export const timingsSchema = list(timing, 20);

export type GuestMethod = keyof GuestParams;
export type BrowserMethod = keyof BrowserParams;
export type GuestResult<M extends GuestMethod> = z.output<(typeof resultSchemas)[M]>;
export type GuestOutput = z.output<typeof outputSchema>;
export type OnOutput = (output: GuestOutput) => void;
export type BoundedText = z.output<typeof boundedText>;
export type ProcessInfo = z.output<typeof processInfo>;
export type CodeError = z.output<typeof codeError>;
export type Picture = z.output<typeof picture>;
export type FileEntry = z.output<typeof fileEntry>;
export type FileText = z.output<typeof fileText>;
export type FileMatch = z.output<typeof fileMatch>;
export type ListedProcess = z.output<typeof listedProcess>;
export type Timing = z.output<typeof timing>;
export type { BrowserPage, BrowserTab } from "./guest-browser.ts";

/** The data of an error answer with the code `failure`. Every other error code is a fault of the guest itself. */
export interface GuestFailure extends z.output<typeof failureSchema> {
  readonly kind:
    | "outside_workspace"
    | "not_found"
    | "not_a_file"
    | "not_a_directory"
    | "already_exists"
    | "permission_denied"
    | "no_match"
    | "several_matches"
    | "not_text"
    | "bad_pattern"
    | "disk_full"
    | "unknown_process"
    | "interpreter_missing"
    | BrowserFailureKind;
}
