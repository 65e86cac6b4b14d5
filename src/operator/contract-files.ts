/** The part of the contract about what is inside a sandbox: files, processes, the picture of its browser. */

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
  /** There are more than were listed. */
  readonly truncated: boolean;
}

/** `GET sandboxes/:id/text?path=`. */
export interface FileText {
  readonly path: string;
  readonly sizeBytes: number;
  /** Absent when the file is no text. */
  readonly text?: string;
  readonly truncated: boolean;
}

/** `GET sandboxes/:id/changes`: against the workspace as it was when the sandbox began. */
export interface FileChanges {
  readonly changes: readonly FileChange[];
  readonly truncated: boolean;
}

export interface FileChange {
  readonly path: string;
  readonly change: "added" | "changed" | "removed";
  /** What was in it when the sandbox began; of one that was there. */
  readonly before?: string;
  readonly beforeMissing?: MissingText;
  /** What is in it now; of one that is there. */
  readonly after?: string;
  readonly afterMissing?: MissingText;
}

/**
 * Why a text is not here: the file is too large, is no text, could not be opened, came after those that there was room for, was not
 * read in time, stands behind many others here, or was not looked at when the sandbox began.
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

/** `GET sandboxes/:id/browser`: the data of each event `picture`. */
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
  /** As in `SandboxNow`; null where it is not known any more. */
  readonly ledgerId: string | null;
}
