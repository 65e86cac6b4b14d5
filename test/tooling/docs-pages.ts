import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";

export const ROOT: string = resolve(import.meta.dirname, "../..");

export interface Page {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
}

export const PAGES: readonly Page[] = [
  ...readdirSync(ROOT).map((name) => join(ROOT, name)),
  ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" }).map((name) => join(ROOT, "docs", name)),
]
  .filter((path) => path.endsWith(".md"))
  .map((path) => ({ path: relative(ROOT, path), text: readFileSync(path, "utf8") }));

/** What users read; decisions and changes speak of other times too. */
export const GUIDES: readonly Page[] = PAGES.filter(
  ({ path }) => !path.startsWith("docs/decisions") && path !== "CHANGELOG.md",
);

export function pageText(path: string): string {
  return PAGES.find((page) => page.path === path)?.text ?? "";
}

export function withoutCode(text: string): string {
  return text.replaceAll(/```[\s\S]*?```/g, "").replaceAll(/`[^`\n]*`/g, "");
}

export function inlineCode(text: string): readonly string[] {
  return [...text.replaceAll(/```[\s\S]*?```/g, "").matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
}
