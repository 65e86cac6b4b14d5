import { relative, dirname } from "node:path";
import type ts from "typescript-6";
import type { HandlerProblem } from "../handler-description.ts";
import { compiler } from "./compiler.ts";

/** The function that a problem belongs to. */
export interface ProblemSite {
  readonly name: string;
  readonly node: ts.Node;
}

/** Points into the function's own file; a type that is written in another one is named in the message. */
export function problemAt(
  { name, node }: ProblemSite,
  { message, fix, place }: { message: string; fix: string; place?: { readonly node: ts.Node } },
): HandlerProblem {
  const file = node.getSourceFile();
  const exact = place?.node ?? node;
  const isElsewhere = exact.getSourceFile() !== file;
  const { line, character } = positionOf(isElsewhere ? node : exact);
  return {
    file: file.fileName,
    line,
    column: character,
    message: `${name}: ${message}${isElsewhere ? ` (written at ${placeFrom(file.fileName, exact)})` : ""}`,
    fix,
  };
}

function placeFrom(file: string, node: ts.Node): string {
  return `${relative(dirname(file), node.getSourceFile().fileName)}:${positionOf(node).line}`;
}

function positionOf(node: ts.Node): { line: number; character: number } {
  const file = node.getSourceFile();
  const { line, character } = compiler.getLineAndCharacterOfPosition(file, node.getStart(file));
  return { line: line + 1, character: character + 1 };
}
