import type { z } from "zod";
import type { BrowserParams } from "./browser-methods.ts";
import type { outputSchema, resultSchemas } from "./guest-schemas.ts";

/** What the host says to a guest, and what it gets back. A test holds it against the guest's own side. */

export type Language = "python" | "node";

interface CallLimits {
  readonly callId: string;
  readonly timeoutMs: number;
  readonly maxOutputChars: number;
}

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

export interface GuestParams extends BrowserParams {
  readonly "guest.hello": Record<string, never>;
  readonly "code.warm": { readonly language: Language; readonly preload: readonly string[] };
  readonly "code.run": CallLimits & { readonly language: Language; readonly code: string };
  readonly "shell.exec": CallLimits & {
    readonly command: string;
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly stdin?: string;
    readonly background: boolean;
  };
  readonly "shell.output": {
    readonly processId: string;
    readonly cursor: number;
    readonly maxChars: number;
    readonly waitMs: number;
  };
  readonly "shell.kill": { readonly processId: string; readonly signal: "SIGTERM" | "SIGKILL" | "SIGINT" };
  readonly "file.read": {
    readonly path: string;
    readonly encoding: "utf-8" | "latin1" | "utf-16le" | "base64" | "auto";
    readonly startLine?: number;
    readonly endLine?: number;
    readonly offset?: number;
    readonly length?: number;
    readonly maxBytes: number;
  };
  readonly "file.write": {
    readonly path: string;
    readonly content: string;
    readonly encoding: "utf-8" | "base64";
    readonly mode: "overwrite" | "append" | "create";
    readonly permissions?: number;
  };
  readonly "file.list": {
    readonly path: string;
    readonly recursive: boolean;
    readonly glob?: string;
    readonly includeHidden: boolean;
    readonly maxEntries: number;
  };
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
  /** A shell for a person; answers when it has ended. */
  readonly "terminal.run": TerminalSize & { readonly callId: string };
  readonly "terminal.input": { readonly callId: string; readonly text: string };
  readonly "terminal.resize": TerminalSize & { readonly callId: string };
  readonly "process.list": Record<string, never>;
  readonly "process.kill": { readonly pid: number; readonly signal: "SIGTERM" | "SIGKILL" };
}

export type GuestMethod = keyof GuestParams;

export type GuestResult<M extends GuestMethod> = z.output<(typeof resultSchemas)[M]>;

export type GuestOutput = z.output<typeof outputSchema>;

export type OnOutput = (output: GuestOutput) => void;

export const OUTPUT_METHOD = "output";

/** The JSON-RPC error code of failures that the caller can repair. */
export const FAILURE_CODE = -32050;
