import {
  parse,
  type AnyNode,
  type ExportNamedDeclaration,
  type ImportDeclaration,
  type Program,
  type VariableDeclaration,
} from "acorn";
import { Edits } from "./edits.ts";
import { allNodes, boundNames, nodesOutsideFunctions, type TopLevel } from "./syntax-tree.ts";

export interface Cell {
  /** A script; with `isAsync` its value is a promise. */
  readonly script: string;
  readonly isAsync: boolean;
  /** Whether the script's value is that of the last expression. */
  readonly hasValue: boolean;
  /** Characters that stand before the code in its first line. */
  readonly prefixLength: number;
}

/** Where the driver keeps `import.meta` for the code. */
export const META_NAME = "__owlclawImportMeta";

/**
 * Turns code into a script whose top-level names are global variables, so that the next call sees and may declare them
 * again. Lines stay where they are. With `await` or `import` at the top it becomes an async function's body.
 */
export function toCell(code: string): Cell {
  const program = parse(code, {
    ecmaVersion: "latest",
    sourceType: "script",
    allowAwaitOutsideFunction: true,
    allowImportExportEverywhere: true,
    allowHashBang: true,
  });
  const isAsync = needsAsync(program);
  const edits = new Edits(code);
  const names = new Set<string>();
  const functions = new Set<string>();
  for (const statement of program.body) editStatement({ statement, edits, names, functions, isAsync });
  for (const node of allNodes(program)) {
    if (node.type === "MetaProperty" && node.meta.name === "import") edits.replace(node.start, node.end, META_NAME);
  }
  const last = program.body.at(-1);
  const hasValue = last?.type === "ExpressionStatement" && last.directive === undefined;
  if (isAsync && hasValue) {
    const endsWithSemicolon = code[last.end - 1] === ";";
    edits.insert(last.start, "return (");
    edits.replace(endsWithSemicolon ? last.end - 1 : last.end, last.end, ");");
  }
  const body = edits.apply().replace(/^#!/u, "//");
  if (!isAsync) return { script: body, isAsync, hasValue, prefixLength: 0 };
  const declared = names.size === 0 ? "" : `var ${[...names].join(",")};`;
  const hoisted = [...functions].map((name) => `globalThis.${name}=${name};`).join("");
  const prefix = `${declared}(async()=>{${hoisted}`;
  return { script: `${prefix}${body}\n})()`, isAsync, hasValue, prefixLength: prefix.length };
}

function needsAsync(program: Program): boolean {
  for (const node of nodesOutsideFunctions(program)) {
    if (node.type === "AwaitExpression" || /^Import.*Declaration$|^Export/u.test(node.type)) return true;
    if (node.type === "ForOfStatement" && node.await) return true;
  }
  return false;
}

interface StatementEdit {
  readonly statement: TopLevel;
  readonly edits: Edits;
  /** Variables to declare outside the async function. */
  readonly names: Set<string>;
  /** Functions to make global at its start. */
  readonly functions: Set<string>;
  readonly isAsync: boolean;
}

function editStatement(options: StatementEdit): void {
  const { statement, edits, names, functions, isAsync } = options;
  switch (statement.type) {
    case "VariableDeclaration":
      return isAsync ? assignInstead(statement, options) : useVar(statement, edits);
    case "ClassDeclaration": {
      const name = statement.id.name;
      names.add(name);
      edits.insert(statement.start, isAsync ? `${name}=` : `var ${name}=`);
      return edits.insert(statement.end, ";");
    }
    case "FunctionDeclaration":
      functions.add(statement.id.name);
      return;
    case "ImportDeclaration":
      return replaceKeepingLines(statement, { text: importCall(statement, names), edits });
    case "ExportNamedDeclaration":
      return editExport(statement, options);
    case "ExportDefaultDeclaration":
      edits.replace(statement.start, statement.declaration.start, "module.exports.default=");
      return edits.insert(statement.end, ";");
    case "ExportAllDeclaration":
      return edits.replace(statement.start, statement.end, `await import(${statement.source.raw ?? ""});`);
    default:
      if (isAsync) hoistInnerVars(statement, options);
  }
}

/** `const x = 1` in a script cannot be declared again by the next one; `var` can. */
function useVar(declaration: VariableDeclaration, edits: Edits): void {
  const { start, kind } = declaration;
  edits.replace(start, start + kind.length, "var".padEnd(kind.length));
}

function assignInstead(declaration: VariableDeclaration, { edits, names }: StatementEdit): void {
  const { start, kind, end, declarations } = declaration;
  edits.replace(start, start + kind.length, "".padEnd(kind.length - 1) + ";");
  edits.insert(start + kind.length, "(");
  for (const { id, init, end: declaratorEnd } of declarations) {
    for (const name of boundNames(id)) names.add(name);
    // A declaration without a value sets the name to undefined, as a new call expects.
    if (init === null || init === undefined) edits.insert(declaratorEnd, "=undefined");
  }
  const last = declarations.at(-1);
  edits.replace(last?.end ?? end, end, ");");
}

/** `var` inside blocks and loops is the whole cell's; as part of the async function it would end with it. */
function hoistInnerVars(statement: AnyNode, { edits, names }: StatementEdit): void {
  const heads = new Set<AnyNode | null | undefined>();
  for (const node of nodesOutsideFunctions(statement)) {
    if (node.type === "ForInStatement" || node.type === "ForOfStatement") heads.add(node.left);
    if (node.type === "ForStatement") heads.add(node.init);
    if (node.type !== "VariableDeclaration" || node.kind !== "var") continue;
    for (const { id } of node.declarations) for (const name of boundNames(id)) names.add(name);
    // The head of a loop takes an expression as it takes a declaration.
    if (heads.has(node)) edits.replace(node.start, node.start + "var".length, "");
    else assignInner(node, edits);
  }
}

/** Unlike at the top, `var x` without a value leaves an inner `x` as it is. */
function assignInner(declaration: VariableDeclaration, edits: Edits): void {
  const { start, end, declarations } = declaration;
  edits.replace(start, start + "var".length, ";(");
  edits.replace(declarations.at(-1)?.end ?? end, end, ");");
}

function editExport(statement: ExportNamedDeclaration, options: StatementEdit): void {
  const { edits } = options;
  const { declaration, source, start, end } = statement;
  if (declaration === null || declaration === undefined) {
    const text = source === null || source === undefined ? ";" : `await import(${source.raw ?? ""});`;
    return edits.replace(start, end, text);
  }
  edits.replace(start, declaration.start, "");
  editStatement({ ...options, statement: declaration });
}

function importCall(declaration: ImportDeclaration, names: Set<string>): string {
  const call = `await import(${declaration.source.raw ?? ""})`;
  const members: string[] = [];
  let whole = "";
  for (const specifier of declaration.specifiers) {
    const local = specifier.local.name;
    names.add(local);
    if (specifier.type === "ImportNamespaceSpecifier") whole = `${local}=`;
    else if (specifier.type === "ImportDefaultSpecifier") members.push(`default:${local}`);
    else members.push(`${importedName(specifier.imported)}:${local}`);
  }
  if (members.length === 0) return `${whole}${call};`;
  return `({${members.join(",")}}=${whole}${call});`;
}

function importedName(
  imported: { type: "Identifier"; name: string } | { type: "Literal"; raw?: string | undefined },
): string {
  return imported.type === "Identifier" ? imported.name : (imported.raw ?? "");
}

/** What follows an import of several lines stays in its line. */
function replaceKeepingLines({ start, end }: AnyNode, { text, edits }: { text: string; edits: Edits }): void {
  edits.replace(start, end, text + "\n".repeat(edits.lineBreaks(start, end)));
}
