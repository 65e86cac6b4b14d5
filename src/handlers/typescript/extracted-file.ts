import type { HandlerDescription, HandlerProblem } from "../handler-description.ts";

/** What the compiler found in one file, and what that depends on. */
export interface ExtractedFile {
  readonly file: string;
  readonly handlers: readonly HandlerDescription[];
  /** For each handler, where its function is written: a function that several files export is one tool. */
  readonly origins: readonly string[];
  readonly problems: readonly HandlerProblem[];
  readonly dependencies: readonly string[];
  /** Paths that were looked for in vain: a file that appears there changes the result. */
  readonly missing: readonly string[];
}

export interface ExtractRequest {
  readonly files: readonly string[];
}

export interface ExtractAnswer {
  readonly extracted: readonly ExtractedFile[];
  /** SHA-256 of everything that was read, by path. */
  readonly digests: Readonly<Record<string, string>>;
}

/** Our own child process answers, so that the shape alone is looked at. */
export function isExtractAnswer(value: unknown): value is ExtractAnswer {
  return typeof value === "object" && value !== null && "extracted" in value && "digests" in value;
}

export function isExtractRequest(value: unknown): value is ExtractRequest {
  return typeof value === "object" && value !== null && "files" in value && Array.isArray(value.files);
}
