/** The part of the contract about the inside of a sandbox: files, processes, browser screenshots. */

export interface FileEntry {
  readonly name: string;
  readonly kind: "file" | "directory" | "link" | "other";
  readonly sizeBytes: number;
  readonly modifiedAt?: string;
}

/** `GET sandboxes/:id/files?path=`. */
export interface FileList {
  readonly path: string;
  readonly entries: readonly FileEntry[];
  /** The folder has more entries than were listed. */
  readonly truncated: boolean;
}

/** `GET sandboxes/:id/text?path=`. */
export interface FileText {
  readonly path: string;
  readonly sizeBytes: number;
  /** Absent when the file is not text. */
  readonly text?: string;
  readonly truncated: boolean;
}

/** `GET sandboxes/:id/changes`: compared with the workspace when the sandbox started. */
export interface FileChanges {
  readonly changes: readonly FileChange[];
  readonly truncated: boolean;
}

export interface FileChange {
  readonly path: string;
  readonly change: "added" | "changed" | "removed";
  /** The content when the sandbox started. Absent for an added file. */
  readonly before?: string;
  readonly beforeMissing?: MissingText;
  /** The content now. Absent for a removed file. */
  readonly after?: string;
  readonly afterMissing?: MissingText;
}

/**
 * Why a text is missing. `large`: the file is too large. `binary`: it is not text. `gone`: it could not be opened.
 * `full`: the size limit for all texts was reached. `late`: it was not read in time. `many`: the response contains
 * texts for a limited number of files. `unknown`: it was not read when the sandbox started.
 */
export type MissingText = "large" | "binary" | "gone" | "full" | "late" | "many" | "unknown";

/** `GET sandboxes/:id/processes`. */
export interface ProcessList {
  readonly processes: readonly SandboxProcess[];
}

export interface SandboxProcess {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
  readonly cpuPercent?: number;
  readonly memoryBytes?: number;
  readonly startedAt?: string;
}

/** The data of each `picture` event of `GET sandboxes/:id/browser`. */
export interface BrowserPicture {
  readonly url: string;
  readonly title: string;
  /** A JPEG in base64. */
  readonly image: string;
  readonly width: number;
  readonly height: number;
}

/** `POST sandboxes/:id/browser/input`. */
export type BrowserInput =
  | { readonly click: { readonly x: number; readonly y: number } }
  | { readonly type: string }
  | { readonly key: string }
  | { readonly scroll: { readonly x: number; readonly y: number; readonly dy: number } };

/** `GET past-sandboxes/:id`. */
export interface PastSandbox {
  /** As in `SandboxNow`; null when it is no longer known. */
  readonly ledgerId: string | null;
}
