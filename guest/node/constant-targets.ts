import type { AnyNode, Identifier, Pattern, Program } from "acorn";
import { allNodes, boundNames } from "./syntax-tree.ts";

/** A name that is assigned to, and whether it stands for key and value in a pattern such as `{ a }`. */
export interface AssignedName {
  readonly node: Identifier;
  readonly isShorthand: boolean;
}

/** The names that a node assigns to without declaring them. */
export function assignedNames(node: AnyNode): AssignedName[] {
  switch (node.type) {
    case "AssignmentExpression":
      return targetsOf(node.left);
    case "UpdateExpression":
      return node.argument.type === "Identifier" ? [{ node: node.argument, isShorthand: false }] : [];
    case "ForInStatement":
    case "ForOfStatement":
      return node.left.type === "VariableDeclaration" ? [] : targetsOf(node.left);
    default:
      return [];
  }
}

function targetsOf(pattern: Pattern): AssignedName[] {
  switch (pattern.type) {
    case "Identifier":
      return [{ node: pattern, isShorthand: false }];
    case "ObjectPattern":
      return pattern.properties.flatMap((property) => {
        if (property.type === "RestElement") return targetsOf(property.argument);
        return targetsOf(property.value).map(({ node }) => ({ node, isShorthand: property.shorthand }));
      });
    case "ArrayPattern":
      return pattern.elements.flatMap((element) => (element === null ? [] : targetsOf(element)));
    case "RestElement":
      return targetsOf(pattern.argument);
    case "AssignmentPattern":
      return targetsOf(pattern.left);
    case "MemberExpression":
      return [];
  }
}

/** Names that something inside the program has for itself: there they are not the program's. */
export function innerNames(program: Program): Set<string> {
  const names = new Set<string>();
  const top = new Set<AnyNode>(program.body);
  const addAll = (patterns: readonly Pattern[]): void => {
    for (const pattern of patterns) for (const name of boundNames(pattern)) names.add(name);
  };
  for (const node of allNodes(program)) {
    if ("params" in node) addAll(node.params);
    if (node.type === "CatchClause" && node.param) addAll([node.param]);
    if (top.has(node)) continue;
    if (node.type === "VariableDeclaration") addAll(node.declarations.map(({ id }) => id));
    if (/^(?:Function|Class)/u.test(node.type) && "id" in node && node.id?.type === "Identifier")
      names.add(node.id.name);
  }
  return names;
}
