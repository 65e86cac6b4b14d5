import {
  applyEdits,
  findNodeAtLocation,
  getNodeValue,
  modify,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser/lib/esm/main.js";

export interface ServerPlace {
  /** The key of the object that contains the servers by name. */
  readonly key: string;
  readonly name: string;
}

/** Some clients write comments and trailing commas into these files. Both are kept. */
const LENIENT = { allowTrailingComma: true, disallowComments: false, allowEmptyContent: true };

/**
 * Adds or replaces the server entry; removes it when `entry` is undefined. Everything else in the text stays unchanged.
 * @throws Error with the reason when the file cannot be edited.
 */
export function editClientConfig(text: string, { key, name }: ServerPlace, entry: object | undefined): string {
  const tree = readTree(text);
  if (tree === undefined) return entry === undefined ? text : `${pretty({ [key]: { [name]: entry } }, "  ", "")}\n`;
  if (tree.type !== "object") throw new Error("it holds no JSON object");
  const servers = findNodeAtLocation(tree, [key]);
  if (servers !== undefined && servers.type !== "object") throw new Error(`its "${key}" is no JSON object`);
  const known = servers && findNodeAtLocation(servers, [name]);
  if (JSON.stringify(known && getNodeValue(known)) === JSON.stringify(entry)) return text;
  if (entry === undefined) return applyEdits(text, modify(text, [key, name], undefined, {}));
  if (known !== undefined) return replaced(text, known, entry);
  return servers === undefined
    ? inserted(text, tree, { [key]: { [name]: entry } })
    : inserted(text, servers, { [name]: entry });
}

function readTree(text: string): Node | undefined {
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, LENIENT);
  const [first] = errors;
  if (first === undefined) return tree;
  const line = text.slice(0, first.offset).split("\n").length;
  throw new Error(`it is no valid JSON (${printParseErrorCode(first.error)} in line ${line})`);
}

/** Inserts the member as the first one: a comment behind a member belongs to that member. */
function inserted(text: string, parent: Node, member: object): string {
  const step = /\n([ \t]+)\S/.exec(text)?.[1] ?? "  ";
  const outer = indentAt(text, parent.offset);
  const opening = parent.offset + 1;
  const comment = /^[ \t]*\/\/[^\n]*/.exec(text.slice(opening))?.[0] ?? "";
  const at = opening + comment.length;
  const rest = text.slice(at);
  const isEmpty = (parent.children ?? []).length === 0;
  const lines = pretty(member, step, outer).split("\n").slice(1, -1).join("\n");
  const closing = /^\s*\n/.test(rest) ? "" : `\n${outer}${isEmpty ? "" : step}`;
  return `${text.slice(0, at)}\n${lines}${isEmpty ? "" : ","}${closing}${closing === "" ? rest : rest.trimStart()}`;
}

function replaced(text: string, { offset, length }: Node, entry: object): string {
  const step = /\n([ \t]+)\S/.exec(text)?.[1] ?? "  ";
  return text.slice(0, offset) + pretty(entry, step, indentAt(text, offset)) + text.slice(offset + length);
}

function pretty(value: object, step: string, outer: string): string {
  return JSON.stringify(value, null, step).replaceAll("\n", `\n${outer}`);
}

/** The white space at the start of the line that contains this offset. */
function indentAt(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}
