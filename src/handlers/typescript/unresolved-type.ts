import type ts from "typescript-6";
import { compiler } from "./compiler.ts";
import type { Place, Refusal } from "./mapping.ts";

/** Names the first type at this place that the compiler does not know, and the import that should have brought it. */
export function unresolvedRefusal(checker: ts.TypeChecker, place: Place): Refusal {
  const reference = findUnresolved(checker, place.node);
  const name = reference?.getText() ?? place.path;
  const module = reference === undefined ? undefined : importOf(reference);
  if (module === undefined) {
    return {
      place,
      message: `${place.path} has the type ${name}, which cannot be found`,
      fix: "import or declare it, or install the package with its types",
    };
  }
  return {
    place,
    message: `${place.path} has the type ${name}, but the module "${module}" cannot be found`,
    fix: `correct the import of "${module}", or install the package with its types`,
  };
}

function findUnresolved(checker: ts.TypeChecker, node: ts.Node): ts.EntityName | undefined {
  let found: ts.EntityName | undefined;
  const visit = (child: ts.Node): void => {
    if (found !== undefined) return;
    if (compiler.isTypeReferenceNode(child) && checker.getTypeFromTypeNode(child).flags & compiler.TypeFlags.Any) {
      found = child.typeName;
      return;
    }
    compiler.forEachChild(child, visit);
  };
  visit(node);
  return found;
}

function importOf(name: ts.EntityName): string | undefined {
  const first = compiler.isQualifiedName(name) ? name.getFirstToken()?.getText() : name.text;
  for (const statement of name.getSourceFile().statements) {
    if (!compiler.isImportDeclaration(statement) || !compiler.isStringLiteral(statement.moduleSpecifier)) continue;
    const words: readonly string[] = statement.importClause?.getText().match(/[\w$]+/g) ?? [];
    if (first !== undefined && words.includes(first)) return statement.moduleSpecifier.text;
  }
  return undefined;
}
