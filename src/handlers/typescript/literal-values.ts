import type ts from "typescript-6";
import { compiler, literalValue } from "./compiler.ts";

/** The value of a literal expression; undefined for every other expression. */
export function literalOf(checker: ts.TypeChecker | undefined, expression: ts.Expression): unknown {
  if (compiler.isStringLiteralLike(expression)) return expression.text;
  if (compiler.isNumericLiteral(expression)) return Number(expression.text);
  if (KEYWORDS.has(expression.kind)) return KEYWORDS.get(expression.kind);
  const inner = unwrapped(expression);
  if (inner !== undefined) return literalOf(checker, inner);
  if (compiler.isPrefixUnaryExpression(expression)) return negated(checker, expression);
  if (compiler.isArrayLiteralExpression(expression)) return arrayOf(checker, expression);
  if (compiler.isObjectLiteralExpression(expression)) return objectOf(checker, expression);
  // The type of an enum member or a constant is its value.
  const isName = compiler.isPropertyAccessExpression(expression) || compiler.isIdentifier(expression);
  return isName && checker !== undefined ? literalValue(checker.getTypeAtLocation(expression)) : undefined;
}

const KEYWORDS: ReadonlyMap<ts.SyntaxKind, boolean | null> = new Map([
  [compiler.SyntaxKind.TrueKeyword, true],
  [compiler.SyntaxKind.FalseKeyword, false],
  [compiler.SyntaxKind.NullKeyword, null],
]);

function unwrapped(expression: ts.Expression): ts.Expression | undefined {
  const isWrapped =
    compiler.isParenthesizedExpression(expression) ||
    compiler.isAsExpression(expression) ||
    compiler.isSatisfiesExpression(expression);
  return isWrapped ? expression.expression : undefined;
}

function negated(checker: ts.TypeChecker | undefined, { operator, operand }: ts.PrefixUnaryExpression): unknown {
  const value = literalOf(checker, operand);
  return operator === compiler.SyntaxKind.MinusToken && typeof value === "number" ? -value : undefined;
}

function arrayOf(checker: ts.TypeChecker | undefined, { elements }: ts.ArrayLiteralExpression): unknown {
  const values = elements.map((element) => literalOf(checker, element));
  return values.includes(undefined) ? undefined : values;
}

function objectOf(checker: ts.TypeChecker | undefined, { properties }: ts.ObjectLiteralExpression): unknown {
  const entries: [string, unknown][] = [];
  for (const property of properties) {
    if (!compiler.isPropertyAssignment(property) || compiler.isComputedPropertyName(property.name)) return undefined;
    const value = literalOf(checker, property.initializer);
    if (value === undefined) return undefined;
    entries.push([compiler.isIdentifier(property.name) ? property.name.text : literalKey(property.name), value]);
  }
  return Object.fromEntries(entries);
}

function literalKey(name: ts.PropertyName): string {
  return compiler.isStringLiteralLike(name) || compiler.isNumericLiteral(name) ? name.text : name.getText();
}

/** Parses JSON, a JavaScript literal, or a call with one literal (`convert({ to: "EUR" })`); undefined for other text. */
export function parseLiteral(text: string): unknown {
  const code = text.replace(/^```\w*\n([\s\S]*?)\n?```$/, "$1").trim();
  const file = compiler.createSourceFile(
    "literal.ts",
    `(${code.replace(/;$/, "")})`,
    compiler.ScriptTarget.Latest,
    true,
  );
  const [statement, ...more] = file.statements;
  if (statement === undefined || more.length > 0 || !compiler.isExpressionStatement(statement)) return undefined;
  const { expression } = statement;
  const inner = compiler.isParenthesizedExpression(expression) ? expression.expression : expression;
  const call = compiler.isAwaitExpression(inner) ? inner.expression : inner;
  if (!compiler.isCallExpression(call)) return literalOf(undefined, inner);
  const [argument] = call.arguments;
  return call.arguments.length === 1 && argument !== undefined ? literalOf(undefined, argument) : undefined;
}
