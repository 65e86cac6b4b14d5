import type ts from "typescript-6";
import { TOOL_NAME } from "../../capability/define-tool.ts";
import type { JsonSchema } from "../../capability/schema.ts";
import type { HandlerDescription, HandlerProblem } from "../handler-description.ts";
import { compiler } from "./compiler.ts";
import { describeInput } from "./describe-input.ts";
import { describeOutput } from "./describe-output.ts";
import { type Doc, tagText } from "./doc-comment.ts";
import { type ExportedFunction, parametersOf, type Parameter } from "./exported-functions.ts";
import { handlerTags, strayTags } from "./handler-tags.ts";
import type { Refusal } from "./type-location.ts";
import { isPublicType } from "./project.ts";
import { relative, dirname } from "node:path";

const CONTEXTS = ["CallContext", "HandlerContext"];

export type Described =
  | { readonly handler: HandlerDescription }
  | { readonly handler?: undefined; readonly problems: readonly HandlerProblem[] };

/** The function as a tool, or the problems that prevent it. */
export function describeFunction(program: ts.Program, exported: ExportedFunction): Described {
  const { node, doc, signatures } = exported;
  const site: ProblemSite = { name: exported.name === "" ? "the default export" : exported.name, node };
  const [signature] = signatures;
  const early = assertUsable(exported);
  if (early !== undefined || signature === undefined) {
    return { problems: [problemAt(site, early ?? { message: "it has no signature", fix: "write a function" })] };
  }
  const all = parametersOf({ checker: program.getTypeChecker(), signature, node });
  const { parameters, context, refusals: misplaced } = splitContext(all);
  const input = describeInput({ program, parameters, context, doc });
  const text = tagText(doc, "returns") ?? tagText(doc, "return");
  const output = describeOutput({ program, signature, node: returnNode(signature) ?? node, text });
  const tags = handlerTags(doc);
  const problems = [
    ...[...misplaced, ...input.refusals, ...output.refusals].map((refusal) => problemAt(site, refusal)),
    ...[...tags.problems, ...strayTags(doc, fieldsOf(input.schema))].map((problem) => problemAt(site, problem)),
  ];
  if (problems.length > 0) return { problems };
  return {
    handler: {
      name: exported.name,
      description: descriptionOf(doc),
      ...tags.fields,
      inputSchema: input.schema,
      ...(output.schema === undefined ? {} : { outputSchema: output.schema }),
      call: input.call,
      dates: input.dates,
      exportName: exported.exportName,
      line: positionOf(node).line,
      isGenerator: output.isGenerator,
    },
  };
}

function fieldsOf({ properties }: JsonSchema): readonly string[] {
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
}

function assertUsable({ name, doc, signatures }: ExportedFunction): { message: string; fix: string } | undefined {
  if (name === "") return { message: "a default export needs a name", fix: "write export default function name(…)" };
  if (!TOOL_NAME.test(name)) {
    const message = `${name} is no name for a tool`;
    return { message, fix: 'use 1 to 64 letters of A to Z, digits, "_" or "-", or add the tag @hidden' };
  }
  if (signatures.length > 1) {
    const message = "it is overloaded, and a tool has one signature";
    return { message, fix: "write one signature with optional parameters or a union, or one function for each" };
  }
  if (doc.text === "") {
    const message = "its doc comment has no text, which is the tool's description";
    return { message, fix: "say what it does in the first line, or add the tag @hidden" };
  }
  return undefined;
}

function splitContext(all: readonly Parameter[]): {
  parameters: readonly Parameter[];
  context: number | undefined;
  refusals: readonly Refusal[];
} {
  const found = all.find(({ type }) => isContext(type));
  if (found === undefined) return { parameters: all, context: undefined, refusals: [] };
  const context = all.indexOf(found);
  const location = { path: found.name, pointer: "", node: found.node };
  const message = `${found.name} is the context and must be the last parameter`;
  return {
    parameters: all.filter((parameter) => parameter !== found),
    context,
    refusals: context === all.length - 1 ? [] : [{ location, message, fix: "move it to the end" }],
  };
}

function isContext(type: ts.Type): boolean {
  return (
    isPublicType(type, CONTEXTS) || (type.isUnion() && type.types.some((member) => isPublicType(member, CONTEXTS)))
  );
}

function descriptionOf(doc: Doc): string {
  const deprecated = tagText(doc, "deprecated");
  if (deprecated === undefined) return doc.text;
  return `${doc.text}\n\nDeprecated${deprecated === "" ? "." : `: ${deprecated}`}`;
}

function returnNode(signature: ts.Signature): ts.Node | undefined {
  const declaration = signature.getDeclaration();
  return "type" in declaration ? declaration.type : undefined;
}

/** The function that a problem belongs to. */
interface ProblemSite {
  readonly name: string;
  readonly node: ts.Node;
}

/** Points into the function's own file; for a type of another file, the message names that position. */
function problemAt(
  { name, node }: ProblemSite,
  { message, fix, location }: { message: string; fix: string; location?: { readonly node: ts.Node } },
): HandlerProblem {
  const file = node.getSourceFile();
  const exact = location?.node ?? node;
  const isElsewhere = exact.getSourceFile() !== file;
  const { line, character } = positionOf(isElsewhere ? node : exact);
  return {
    file: file.fileName,
    line,
    column: character,
    message: `${name}: ${message}${isElsewhere ? ` (written at ${positionFrom(file.fileName, exact)})` : ""}`,
    fix,
  };
}

function positionFrom(file: string, node: ts.Node): string {
  return `${relative(dirname(file), node.getSourceFile().fileName)}:${positionOf(node).line}`;
}

function positionOf(node: ts.Node): { line: number; character: number } {
  const file = node.getSourceFile();
  const { line, character } = compiler.getLineAndCharacterOfPosition(file, node.getStart(file));
  return { line: line + 1, character: character + 1 };
}
