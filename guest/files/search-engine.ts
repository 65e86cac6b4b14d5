import type { FileMatch } from "../../contract/guest.ts";

/** A search whose pattern and place are checked. */
export interface SearchPlan {
  readonly folder: string;
  /** In `folder`; without it, everything below. */
  readonly onlyFile?: string;
  /** Stands before every path of a match. */
  readonly prefix: string;
  readonly glob?: string;
  readonly includeHidden: boolean;
  readonly pattern: RegExp;
  /** What the caller wrote, where it is plain text. */
  readonly plainText?: string;
  readonly contextLines: number;
  readonly maxMatches: number;
}

export interface SearchProgress {
  /** The matches of one file. */
  onFile(matches: readonly FileMatch[]): void;
  /** At the end, for an engine that tells of files with matches alone. */
  onSearched(fileCount: number): void;
}

/** Resolves when everything was searched; ends early when the signal says so. */
export type SearchEngine = (plan: SearchPlan, progress: SearchProgress, signal: AbortSignal) => Promise<void>;

export const SHOWN_CHARS_MAX = 1_000;
