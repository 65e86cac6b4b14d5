import type ts from "typescript-6";
import { compiler } from "./compiler.ts";
import { isReference, isTuple, mayBeNothing } from "./type-guards.ts";

/** One parameter of a signature, seen as a field. */
export interface Parameter {
  readonly name: string;
  readonly type: ts.Type;
  readonly node: ts.Node;
  readonly isOptional: boolean;
  readonly isRest: boolean;
  readonly declaration: ts.ParameterDeclaration | undefined;
  /** Neither written nor to be inferred: in JavaScript without doc types, or with noImplicitAny off. */
  readonly isUntyped: boolean;
}

export interface SignatureSource {
  readonly checker: ts.TypeChecker;
  readonly signature: ts.Signature;
  /** Where to look when a parameter has no declaration of its own. */
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

/** `...pair: [string, number]` takes exactly these; `...names: string[]` may be nothing at all. */
function needsItems(type: ts.Type): boolean {
  return isReference(type) && isTuple(type.target) && type.target.minLength > 0;
}

function isUntyped(declaration: ts.ParameterDeclaration, type: ts.Type): boolean {
  if (declaration.type !== undefined || declaration.initializer !== undefined) return false;
  if (compiler.getJSDocType(declaration) !== undefined) return false;
  // A function whose variable has a type takes its parameters' types from there.
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
