export interface FileTextsParams {
  readonly paths: readonly string[];
  /** Of each file; a larger one is not read. */
  readonly maxBytes: number;
}

/** A text, or why there is none. */
export type FileText = { readonly text: string } | { readonly missing: "large" | "binary" | "gone" };

export interface FileTextsResult {
  /** In the order of the paths. */
  readonly texts: readonly FileText[];
}
