import {
  parse,
  type AnyNode,
  type ExportDefaultDeclaration,
  type ExportNamedDeclaration,
  type ImportAttribute,
  type ImportDeclaration,
  type Literal,
  type Program,
  type VariableDeclaration,
} from "acorn";
import { CONSTANTS_NAME, type DeclaredNames, type NameKind } from "./cell-names.ts";
import {
  allNodes,
  boundNames,
  nodesOutsideFunctions,
  type TopLevel,
  Edits,
  assignedNames,
  innerNames,
  type AssignedName,
} from "./syntax-tree.ts";

/** Name of the object with `import.meta` for the code. */
export const META_NAME = "__owlclawImportMeta";

export interface Cell {
  /** A script; with `isAsync` its value is a promise. */
  readonly script: string;
  readonly isAsync: boolean;
  /** Whether the script's value is that of the last expression. */
  readonly hasValue: boolean;
  /** Number of characters before the code in its first line. */
  readonly prefixLength: number;
  readonly declared: DeclaredNames;
}

/** What earlier cells declared. */
interface KnownNames {
  isConstant(name: string): boolean;
}

/**
 * Turns code into a script whose top-level names are global variables, so that the next cell can use and redeclare them. Line
 * numbers do not change. With `await` or `import` at the top it becomes the body of an async function.
 */
export function toCell(code: string, known: KnownNames): Cell {
  const program = parse(code, {
    ecmaVersion: "latest",
    sourceType: "script",
    allowAwaitOutsideFunction: true,
    allowImportExportEverywhere: true,
    allowHashBang: true,
  });
  const isAsync = needsAsync(program);
  const edits = new Edits(code);
  const declared = new Map<string, NameKind>();
  const functions = new Set<string>();
  for (const statement of program.body) editStatement({ statement, edits, declared, functions, isAsync });
  const assigned: AssignedName[] = [];
  for (const node of allNodes(program)) {
    if (node.type === "MetaProperty" && node.meta.name === "import") edits.replace(node.start, node.end, META_NAME);
    assigned.push(...assignedNames(node));
  }
  const last = program.body.at(-1);
  const hasValue = last?.type === "ExpressionStatement" && last.directive === undefined;
  if (isAsync && hasValue) {
    const endsWithSemicolon = code[last.end - 1] === ";";
    edits.insert(last.start, "return (");
    edits.replace(endsWithSemicolon ? last.end - 1 : last.end, last.end, ");");
  }
  guardConstants({ program, assigned, edits, isConstant: (name) => isConstant(name, { declared, known }) });
  const body = edits.apply().replace(/^#!/u, "//");
  if (!isAsync) return { script: body, isAsync, hasValue, prefixLength: 0, declared };
  const hoisted = [...functions].map((name) => `globalThis.${name}=${name};`).join("");
  const prefix = `(async()=>{${hoisted}`;
  return { script: `${prefix}${body}\n})()`, isAsync, hasValue, prefixLength: prefix.length, declared };
}

function isConstant(name: string, { declared, known }: { declared: DeclaredNames; known: KnownNames }): boolean {
  const kind = declared.get(name);
  return kind === undefined ? known.isConstant(name) : kind === "const";
}

interface ConstantGuard {
  readonly program: Program;
  readonly assigned: readonly AssignedName[];
  readonly edits: Edits;
  readonly isConstant: (name: string) => boolean;
}

/** Assignments to constants go through an object that rejects them. */
function guardConstants({ program, assigned, edits, isConstant: isAbout }: ConstantGuard): void {
  const targets = assigned.filter(({ node }) => isAbout(node.name));
  if (targets.length === 0) return;
  const inner = innerNames(program);
  for (const { node, isShorthand } of targets) {
    // An inner scope declares the name too: the reference is not resolved.
    if (inner.has(node.name)) continue;
    edits.insert(node.start, `${isShorthand ? `${node.name}:` : ""}${CONSTANTS_NAME}.`);
  }
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
  readonly declared: Map<string, NameKind>;
  /** Functions to make global at the start. */
  readonly functions: Set<string>;
  readonly isAsync: boolean;
}

function editStatement(options: StatementEdit): void {
  const { statement, edits, declared, functions, isAsync } = options;
  switch (statement.type) {
    case "VariableDeclaration":
      return isAsync ? assignInstead(statement, options) : useVar(statement, options);
    case "ClassDeclaration": {
      const name = statement.id.name;
      declared.set(name, "let");
      edits.insert(statement.start, isAsync ? `${name}=` : `var ${name}=`);
      return edits.insert(statement.end, ";");
    }
    case "FunctionDeclaration":
      functions.add(statement.id.name);
      declared.set(statement.id.name, "var");
      return;
    case "ImportDeclaration":
      return replaceKeepingLines(statement, { text: importCall(statement, declared), edits });
    case "ExportNamedDeclaration":
      return editExport(statement, options);
    case "ExportDefaultDeclaration":
      return editDefaultExport(statement, options);
    case "ExportAllDeclaration":
      return edits.replace(statement.start, statement.end, `${importOf(statement.source, statement.attributes)};`);
    default:
      editInnerVars(statement, options);
  }
}

/** The next script cannot redeclare `const x = 1`; it can redeclare `var`. */
function useVar(declaration: VariableDeclaration, { edits, declared }: StatementEdit): void {
  const { start, kind } = declaration;
  declareAll(declaration, declared);
  edits.replace(start, start + kind.length, "var".padEnd(kind.length));
  setEvenWithoutValue(declaration, edits);
}

function assignInstead(declaration: VariableDeclaration, { edits, declared }: StatementEdit): void {
  const { start, kind, end, declarations } = declaration;
  edits.replace(start, start + kind.length, "".padEnd(kind.length - 1) + ";");
  edits.insert(start + kind.length, "(");
  declareAll(declaration, declared);
  setEvenWithoutValue(declaration, edits);
  const last = declarations.at(-1);
  edits.replace(last?.end ?? end, end, ");");
}

function declareAll({ declarations, kind }: VariableDeclaration, declared: Map<string, NameKind>): void {
  const nameKind = kind === "let" || kind === "var" ? kind : "const";
  for (const { id } of declarations) for (const name of boundNames(id)) declared.set(name, nameKind);
}

/** `let x` sets the name to undefined, also when an earlier cell declared it; `var x` keeps its value. */
function setEvenWithoutValue({ declarations, kind }: VariableDeclaration, edits: Edits): void {
  if (kind === "var") return;
  for (const { init, end } of declarations) if (init === null || init === undefined) edits.insert(end, "=undefined");
}

/** `var` inside blocks and loops belongs to the whole cell; in an async function it would be local. */
function editInnerVars(statement: AnyNode, { edits, declared, isAsync }: StatementEdit): void {
  const heads = new Set<AnyNode | null | undefined>();
  for (const node of nodesOutsideFunctions(statement)) {
    if (node.type === "ForInStatement" || node.type === "ForOfStatement") heads.add(node.left);
    if (node.type === "ForStatement") heads.add(node.init);
    if (node.type !== "VariableDeclaration" || node.kind !== "var") continue;
    declareAll(node, declared);
    if (!isAsync) continue;
    // The head of a loop may be an expression or a declaration.
    if (heads.has(node)) edits.replace(node.start, node.start + "var".length, "");
    else assignInner(node, edits);
  }
}

/** Inside blocks, `var x` without a value keeps the value of `x`. */
function assignInner(declaration: VariableDeclaration, edits: Edits): void {
  const { start, end, declarations } = declaration;
  edits.replace(start, start + "var".length, ";(");
  edits.replace(declarations.at(-1)?.end ?? end, end, ");");
}

function editExport(statement: ExportNamedDeclaration, options: StatementEdit): void {
  const { edits } = options;
  const { declaration, source, start, end } = statement;
  if (declaration === null || declaration === undefined) {
    const text = source === null || source === undefined ? ";" : `${importOf(source, statement.attributes)};`;
    return edits.replace(start, end, text);
  }
  edits.replace(start, declaration.start, "");
  editStatement({ ...options, statement: declaration });
}

function editDefaultExport({ start, end, declaration }: ExportDefaultDeclaration, options: StatementEdit): void {
  const { edits, declared, functions } = options;
  const name = "id" in declaration ? declaration.id?.name : undefined;
  if (declaration.type === "FunctionDeclaration" && name !== undefined) {
    functions.add(name);
    declared.set(name, "var");
    edits.replace(start, declaration.start, "");
    return edits.insert(end, `;module.exports.default=${name};`);
  }
  const isNamedClass = declaration.type === "ClassDeclaration" && name !== undefined;
  if (isNamedClass) declared.set(name, "let");
  edits.replace(start, declaration.start, `module.exports.default=${isNamedClass ? `${name}=` : ""}`);
  edits.insert(end, ";");
}

function importOf(source: Literal, attributes: readonly ImportAttribute[]): string {
  const pairs = attributes.map(({ key, value }) => `${key.type === "Identifier" ? key.name : key.raw}:${value.raw}`);
  return `await import(${source.raw ?? ""}${pairs.length === 0 ? "" : `,{with:{${pairs.join(",")}}}`})`;
}

function importCall(declaration: ImportDeclaration, declared: Map<string, NameKind>): string {
  const call = importOf(declaration.source, declaration.attributes);
  const members: string[] = [];
  let whole = "";
  for (const specifier of declaration.specifiers) {
    const local = specifier.local.name;
    declared.set(local, "const");
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

/** Code after an import of several lines stays in its line. */
function replaceKeepingLines({ start, end }: AnyNode, { text, edits }: { text: string; edits: Edits }): void {
  edits.replace(start, end, text + "\n".repeat(edits.lineBreaks(start, end)));
}
