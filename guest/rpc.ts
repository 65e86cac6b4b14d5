/**
 * What host and guest say to each other. The host checks every answer against schemas of its own: user code can take
 * over the guest. Nothing else of the guest is imported by `src/`.
 */

import type { BrowserFailureKind, BrowserMethods } from "./browser/rpc.ts";
import type { FileTextsParams, FileTextsResult } from "./files/texts-rpc.ts";

export type Language = "python" | "node";

export interface Hello {
  readonly version: string;
  readonly languages: readonly Language[];
  /** What is not as it should be inside, for the log. */
  readonly diagnostics?: readonly string[];
}

export interface CodeRunParams {
  readonly callId: string;
  readonly language: Language;
  readonly code: string;
  readonly timeoutMs: number;
  /** Most characters of stdout and of stderr that come back; of more, head and tail come back and the whole stays in a file. */
  readonly maxOutputChars: number;
}

/** Text that was cut says how much there was and where the whole is. */
export interface BoundedText {
  readonly text: string;
  readonly totalChars: number;
  /** Path inside the sandbox of the whole text (below `/tmp/.owlclaw-output`); absent when nothing was cut. */
  readonly file?: string;
  /** How many bytes are in the file; absent when it has everything. */
  readonly keptBytes?: number;
}

export interface CodeError {
  readonly name: string;
  readonly message: string;
  /** Points at the user's own lines. */
  readonly traceback: string;
}

export interface Picture {
  readonly mimeType: "image/png" | "image/jpeg" | "image/svg+xml";
  /** base64 */
  readonly data: string;
}

export interface CodeRunResult {
  readonly status: "ok" | "error" | "timeout" | "cancelled" | "crashed";
  readonly stdout: BoundedText;
  readonly stderr: BoundedText;
  /** The last expression's value as text; `html` where the value has such a form (pandas), and in `file` as well. */
  readonly value?: { readonly text: string; readonly html?: string; readonly file?: string };
  readonly error?: CodeError;
  readonly pictures: readonly Picture[];
  readonly durationMs: number;
  /** The interpreter had to be started anew (after a time-out, cancellation or crash): variables are gone. */
  readonly interpreterRestarted: boolean;
  /** Processes that the code started and that still run. */
  readonly leftRunning: readonly ProcessInfo[];
  /** What threads, timers and processes of earlier runs printed since the last one. */
  readonly earlierOutput?: string;
}

export interface ShellExecParams {
  readonly callId: string;
  readonly command: string;
  /** Inside the workspace; default the workspace itself. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly timeoutMs: number;
  readonly maxOutputChars: number;
  readonly background: boolean;
}

export interface ShellExecResult {
  readonly status: "exited" | "timeout" | "cancelled" | "running";
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: BoundedText;
  readonly stderr: BoundedText;
  readonly durationMs: number;
  /** For `shell.output` and `shell.kill`; set when it runs in the background. */
  readonly processId?: string;
  readonly leftRunning: readonly ProcessInfo[];
}

export interface ProcessInfo {
  readonly pid: number;
  readonly command: string;
}

export interface ShellOutputParams {
  readonly processId: string;
  /** From the last answer; 0 at first. */
  readonly cursor: number;
  readonly maxChars: number;
  /** Waits so long for something new. */
  readonly waitMs: number;
}

export interface ShellOutputResult {
  /** stdout and stderr in the order in which they came. */
  readonly text: string;
  readonly cursor: number;
  /** Characters between the cursor asked for and the text that are no longer kept. */
  readonly skippedChars: number;
  readonly isRunning: boolean;
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export interface ShellKillParams {
  readonly processId: string;
  readonly signal: "SIGTERM" | "SIGKILL" | "SIGINT";
}

/** How bytes become text. */
export type TextEncoding = "utf-8" | "latin1" | "utf-16le";

export interface FileReadParams {
  readonly path: string;
  readonly encoding: TextEncoding | "base64" | "auto";
  /** 1-based, inclusive; for text. */
  readonly startLine?: number;
  readonly endLine?: number;
  /** For bytes. */
  readonly offset?: number;
  readonly length?: number;
  readonly maxBytes: number;
}

export interface FileReadResult {
  readonly path: string;
  readonly encoding: TextEncoding | "base64";
  readonly content: string;
  readonly sizeBytes: number;
  readonly totalLines?: number;
  readonly startLine?: number;
  readonly endLine?: number;
  /** Of a part by bytes: where its first character starts, and where the next part does; absent at the file's end. */
  readonly offset?: number;
  readonly nextOffset?: number;
  readonly isTruncated: boolean;
}

export interface FileWriteParams {
  readonly path: string;
  readonly content: string;
  readonly encoding: "utf-8" | "base64";
  readonly mode: "overwrite" | "append" | "create";
  /** As in chmod, 0o644. */
  readonly permissions?: number;
}

export interface FileWriteResult {
  readonly path: string;
  readonly bytesWritten: number;
  readonly sizeBytes: number;
  readonly created: boolean;
}

export interface FileListParams {
  readonly path: string;
  readonly recursive: boolean;
  readonly glob?: string;
  readonly includeHidden: boolean;
  readonly maxEntries: number;
}

export interface FileEntry {
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  readonly sizeBytes: number;
  readonly modifiedAt: string;
  /** When it was last written, renamed or given other rights; nobody can set it back. */
  readonly changedAtMs: number;
  readonly linkTarget?: string;
}

export interface FileListResult {
  readonly path: string;
  readonly entries: readonly FileEntry[];
  readonly isTruncated: boolean;
}

export interface FileSearchParams {
  readonly pattern: string;
  readonly isRegex: boolean;
  readonly path: string;
  readonly glob?: string;
  readonly ignoreCase: boolean;
  readonly includeHidden: boolean;
  readonly contextLines: number;
  readonly maxMatches: number;
}

export interface FileMatch {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export interface FileSearchResult {
  readonly matches: readonly FileMatch[];
  /** With and without matches; absent when the search stopped early. */
  readonly filesSearched?: number;
  readonly isTruncated: boolean;
}

export interface FileReplaceParams {
  readonly path: string;
  readonly oldText: string;
  readonly newText: string;
  readonly replaceAll: boolean;
}

export interface FileReplaceResult {
  readonly path: string;
  readonly replacements: number;
  readonly sizeBytes: number;
}

/**
 * Any request may carry `traceparent`, by W3C Trace Context. Its result then has `timings`, measured here: the guest
 * has no network, and the host puts them into the trace.
 */
export interface Timing {
  /** The request as a whole; waiting for earlier code; starting an interpreter; the code, as its interpreter measured it. */
  readonly name: "request" | "queue" | "interpreter.start" | "interpreter.run";
  /** Since the request arrived. */
  readonly startMs: number;
  readonly durationMs: number;
}

/** A shell for a person; what it shows is sent as output of `callId`. */
export interface TerminalOpenParams {
  readonly callId: string;
  readonly cols: number;
  readonly rows: number;
}

export interface TerminalInputParams {
  readonly callId: string;
  readonly text: string;
}

export type TerminalResizeParams = TerminalOpenParams;

export interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
  readonly cpuMs: number;
  readonly ageMs: number;
  readonly memoryBytes: number;
}

export interface ProcessKillParams {
  readonly pid: number;
  readonly signal: "SIGTERM" | "SIGKILL";
}

/** Every method with what it takes and gives. Cancellation is the JSON-RPC library's own. */
export interface GuestMethods extends BrowserMethods {
  readonly "guest.hello": { readonly params: Record<string, never>; readonly result: Hello };
  /** Starts an interpreter ahead of its first use, with modules imported. */
  readonly "code.warm": {
    readonly params: { readonly language: Language; readonly preload: readonly string[] };
    readonly result: Record<string, never>;
  };
  readonly "code.run": { readonly params: CodeRunParams; readonly result: CodeRunResult };
  readonly "shell.exec": { readonly params: ShellExecParams; readonly result: ShellExecResult };
  readonly "shell.output": { readonly params: ShellOutputParams; readonly result: ShellOutputResult };
  readonly "shell.kill": { readonly params: ShellKillParams; readonly result: ShellOutputResult };
  readonly "file.read": { readonly params: FileReadParams; readonly result: FileReadResult };
  readonly "file.write": { readonly params: FileWriteParams; readonly result: FileWriteResult };
  readonly "file.list": { readonly params: FileListParams; readonly result: FileListResult };
  readonly "file.texts": { readonly params: FileTextsParams; readonly result: FileTextsResult };
  readonly "file.search": { readonly params: FileSearchParams; readonly result: FileSearchResult };
  readonly "file.replace": { readonly params: FileReplaceParams; readonly result: FileReplaceResult };
  /** Answers when the shell has ended. */
  readonly "terminal.run": {
    readonly params: TerminalOpenParams;
    readonly result: { readonly exitCode: number | null };
  };
  readonly "terminal.input": { readonly params: TerminalInputParams; readonly result: Record<string, never> };
  readonly "terminal.resize": { readonly params: TerminalResizeParams; readonly result: Record<string, never> };
  readonly "process.list": {
    readonly params: Record<string, never>;
    readonly result: { readonly processes: readonly ListedProcess[] };
  };
  readonly "process.kill": { readonly params: ProcessKillParams; readonly result: Record<string, never> };
}

/** Sent while `code.run`, `shell.exec` or `terminal.run` runs. */
export interface OutputNotification {
  readonly callId: string;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

export const OUTPUT_NOTIFICATION = "output";

/**
 * A failure that the caller can repair travels as a JSON-RPC error with this code and `data: GuestFailure`;
 * every other error code is a fault of the guest itself.
 */
export const GUEST_FAILURE_CODE = -32050;

export interface GuestFailure {
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
  readonly message: string;
  /** What to do next, in the words of a tool result. */
  readonly hint: string;
}
