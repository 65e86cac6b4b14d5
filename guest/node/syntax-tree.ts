import type { AnyNode, ModuleDeclaration, Pattern, Statement } from "acorn";

export type TopLevel = Statement | ModuleDeclaration;

/** Every node below `root` that is not inside a function or class of its own; `root` first. */
export function* nodesOutsideFunctions(root: AnyNode): Generator<AnyNode> {
  yield root;
  for (const child of childrenOf(root)) {
    if (isFunctionLike(child)) yield child;
    else yield* nodesOutsideFunctions(child);
  }
}

/** Every node below `root`. */
export function* allNodes(root: AnyNode): Generator<AnyNode> {
  yield root;
  for (const child of childrenOf(root)) yield* allNodes(child);
}

/** The names that a pattern such as `{ a, b: [c = 1, ...d] }` binds. */
export function boundNames(pattern: Pattern): string[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "ObjectPattern":
      return pattern.properties.flatMap((property) =>
        boundNames(property.type === "RestElement" ? property.argument : property.value),
      );
    case "ArrayPattern":
      return pattern.elements.flatMap((element) => (element === null ? [] : boundNames(element)));
    case "RestElement":
      return boundNames(pattern.argument);
    case "AssignmentPattern":
      return boundNames(pattern.left);
    case "MemberExpression":
      return [];
  }
}

function isFunctionLike({ type }: AnyNode): boolean {
  return /Function|^Class(?:Body|Declaration|Expression)$|^StaticBlock$/u.test(type);
}

function* childrenOf(node: AnyNode): Generator<AnyNode> {
  for (const value of Object.values(node)) {
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const item of items) if (isNode(item)) yield item;
  }
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}
