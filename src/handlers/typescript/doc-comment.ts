import type ts from "typescript-6";
import { compiler } from "./compiler.ts";

export interface DocTag {
  readonly name: string;
  readonly text: string;
  /** The `@param` on whose line this tag stands, as in `@param count how many @minimum 1`. */
  readonly parameter?: string | undefined;
}

export interface Doc {
  readonly text: string;
  readonly tags: readonly DocTag[];
  /** Texts of `@param` by the written name: `count`, `options.count`. */
  readonly parameters: ReadonlyMap<string, string>;
}

const NOTHING: Doc = { text: "", tags: [], parameters: new Map() };

/** The doc comment of a symbol: that of its first declaration that has one. */
export function docOfSymbol(symbol: ts.Symbol): Doc {
  for (const declaration of symbol.declarations ?? []) {
    const doc = docOfNode(declaration);
    if (doc !== undefined) return doc;
  }
  return NOTHING;
}

export function docOfNode(node: ts.Node): Doc | undefined {
  // In JavaScript, @property and nested @param are declarations.
  if (compiler.isJSDocPropertyLikeTag(node)) return { ...NOTHING, text: textOf(node.comment) };
  const comment = compiler.getJSDocCommentsAndTags(node).findLast(compiler.isJSDoc);
  if (comment === undefined) return undefined;
  const tags: DocTag[] = [];
  const parameters = new Map<string, string>();
  let last: { name: string; line: number } | undefined;
  for (const tag of comment.tags ?? []) {
    const line = lineOf(tag);
    if (compiler.isJSDocParameterTag(tag)) {
      last = { name: tag.name.getText(), line };
      parameters.set(last.name, textOf(tag.comment).replace(/^-\s*/, ""));
      continue;
    }
    const parameter = last?.line === line ? last.name : undefined;
    tags.push({ name: tag.tagName.text, text: textOf(tag.comment), parameter });
  }
  return { text: withRemarks(textOf(comment.comment), tags), tags, parameters };
}

export function tagText(doc: Doc, name: string): string | undefined {
  return doc.tags.find((tag) => tag.name === name && tag.parameter === undefined)?.text;
}

function withRemarks(text: string, tags: readonly DocTag[]): string {
  const remarks = tags.filter(({ name }) => name === "remarks").map((tag) => tag.text);
  return [text, ...remarks].filter((part) => part !== "").join("\n\n");
}

/** Replaces `{@link Order}` and `{@link url | words}` by their words. */
function textOf(comment: string | ts.NodeArray<ts.JSDocComment> | undefined): string {
  const text = compiler.getTextOfJSDocComment(comment) ?? "";
  return text
    .replaceAll(/\{@link(?:code|plain)?\s+([^}|\s]+)\s*\|?\s*([^}]*)\}/g, (_, target: string, words: string) =>
      words.trim() === "" ? target : words.trim(),
    )
    .trim();
}

function lineOf(node: ts.Node): number {
  return compiler.getLineAndCharacterOfPosition(node.getSourceFile(), node.pos).line;
}
