import type ts from "typescript-6";
import { compiler, isReference, isTuple, mayBeNothing } from "./compiler.ts";
import { type Doc, docOfNode } from "./doc-comment.ts";

/** A function that a file exports, with the doc comment that makes it a tool. */
export interface ExportedFunction {
  readonly name: string;
  readonly exportName: string;
  /** May be in another file, when it is re-exported. */
  readonly node: ts.Node;
  readonly signatures: readonly ts.Signature[];
  readonly doc: Doc;
}

/** In the order of the file. A function with several export names counts once, if possible under its own name. */
export function exportedFunctions(checker: ts.TypeChecker, file: ts.SourceFile): ExportedFunction[] {
  const module = checker.getSymbolAtLocation(file);
  if (module === undefined) return [];
  const found = new Map<ts.Node, ExportedFunction>();
  for (const symbol of checker.getExportsOfModule(module)) {
    const exported = toFunction(checker, symbol);
    if (exported === undefined) continue;
    const before = found.get(exported.node);
    if (before === undefined || (before.exportName !== before.name && exported.exportName === exported.name))
      found.set(exported.node, exported);
  }
  return [...found.values()].sort((a, b) => a.node.pos - b.node.pos);
}

function toFunction(checker: ts.TypeChecker, symbol: ts.Symbol): ExportedFunction | undefined {
  const isAlias = (symbol.flags & compiler.SymbolFlags.Alias) !== 0;
  const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
  const node = target.valueDeclaration ?? target.declarations?.[0];
  if (node === undefined || (target.flags & (compiler.SymbolFlags.Class | compiler.SymbolFlags.Enum)) !== 0)
    return undefined;
  if (!isFunctionLike(node)) return undefined;
  const type = checker.getTypeOfSymbolAtLocation(target, node);
  const signatures = type.getCallSignatures();
  if (signatures.length === 0 || type.getConstructSignatures().length > 0) return undefined;
  // Any overload may have the doc comment.
  const docs = (target.declarations ?? [node]).map(docOfNode);
  const doc = docs.find((found) => found !== undefined);
  if (doc === undefined) return undefined;
  return { name: nameOf(symbol, node), exportName: symbol.name, node, signatures, doc };
}

function isFunctionLike(node: ts.Node): boolean {
  return (
    compiler.isFunctionDeclaration(node) || compiler.isVariableDeclaration(node) || compiler.isExportAssignment(node)
  );
}

/** A default export has the name of its function; other exports have the name under which they are exported. */
function nameOf(symbol: ts.Symbol, node: ts.Node): string {
  if (symbol.name !== "default") return symbol.name;
  const named = compiler.isFunctionDeclaration(node) || compiler.isVariableDeclaration(node) ? node.name : undefined;
  return named !== undefined && compiler.isIdentifier(named) ? named.text : "";
}

/** A parameter of a signature, which becomes a field. */
export interface Parameter {
  readonly name: string;
  readonly type: ts.Type;
  readonly node: ts.Node;
  readonly isOptional: boolean;
  readonly isRest: boolean;
  readonly declaration: ts.ParameterDeclaration | undefined;
  /** Without a written or inferred type: in JavaScript without doc types, or with noImplicitAny off. */
  readonly isUntyped: boolean;
}

interface SignatureSource {
  readonly checker: ts.TypeChecker;
  readonly signature: ts.Signature;
  /** The position for problems of a parameter without a declaration. */
  readonly node: ts.Node;
}

export function parametersOf({ checker, signature, node }: SignatureSource): Parameter[] {
  return signature.getParameters().map((symbol) => {
    const { valueDeclaration } = symbol;
    const declaration =
      valueDeclaration !== undefined && compiler.isParameter(valueDeclaration) ? valueDeclaration : undefined;
    const type = checker.getTypeOfSymbolAtLocation(symbol, declaration ?? node);
    const isRest = declaration?.dotDotDotToken !== undefined;
    return {
      name: declaration !== undefined && !compiler.isIdentifier(declaration.name) ? "" : symbol.name,
      type,
      node: declaration ?? node,
      isRest,
      isOptional: isRest
        ? !needsItems(type)
        : mayBeNothing(type) || (declaration !== undefined && checker.isOptionalParameter(declaration)),
      declaration,
      isUntyped: declaration !== undefined && isUntyped(declaration, type),
    };
  });
}

/** `...pair: [string, number]` requires two items; `...names: string[]` may be empty. */
function needsItems(type: ts.Type): boolean {
  return isReference(type) && isTuple(type.target) && type.target.minLength > 0;
}

function isUntyped(declaration: ts.ParameterDeclaration, type: ts.Type): boolean {
  if (declaration.type !== undefined || declaration.initializer !== undefined) return false;
  if (compiler.getJSDocType(declaration) !== undefined) return false;
  // The variable's type determines the types of the function's parameters.
  if ((type.flags & compiler.TypeFlags.Any) === 0 && compiler.isIdentifier(declaration.name)) return false;
  return !isTypedElsewhere(declaration);
}

function isTypedElsewhere({ parent }: ts.ParameterDeclaration): boolean {
  return compiler.getJSDocTypeTag(parent) !== undefined || hasTypedVariable(parent);
}

function hasTypedVariable(node: ts.Node): boolean {
  const { parent } = node;
  return (
    compiler.isVariableDeclaration(parent) && (parent.type !== undefined || compiler.getJSDocType(parent) !== undefined)
  );
}
