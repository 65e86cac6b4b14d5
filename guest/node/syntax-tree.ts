import type { AnyNode, ModuleDeclaration, Pattern, Statement, Identifier, Program } from "acorn";

export type TopLevel = Statement | ModuleDeclaration;

/** Every node below `root` outside of nested functions and classes; `root` first. */
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

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Changes to a text, by its original positions. */
export class Edits {
  readonly #source: string;
  readonly #edits: Edit[] = [];

  constructor(source: string) {
    this.#source = source;
  }

  replace(start: number, end: number, text: string): void {
    this.#edits.push({ start, end, text });
  }

  insert(at: number, text: string): void {
    this.#edits.push({ start: at, end: at, text });
  }

  /** The number of line breaks of the original between two positions. */
  lineBreaks(start: number, end: number): number {
    return this.#source.slice(start, end).split("\n").length - 1;
  }

  apply(): string {
    let result = "";
    let position = 0;
    for (const { start, end, text } of this.#edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
      result += this.#source.slice(position, start) + text;
      position = Math.max(position, end);
    }
    return result + this.#source.slice(position);
  }
}

/** A name that is assigned, and whether it is a shorthand in a pattern such as `{ a }`. */
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

/** Names that an inner scope declares: there they do not refer to top-level names. */
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
