import type { Language } from "./guest-methods.ts";

/** What a sandbox starts from. Both have both languages; a template says which one is meant when none is named. */
export const TEMPLATES = {
  python: { language: "python" },
  node: { language: "node" },
} as const satisfies Record<string, { readonly language: Language }>;

export type Template = keyof typeof TEMPLATES;
