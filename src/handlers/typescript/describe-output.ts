import type ts from "typescript-6";
import type { JsonSchema } from "../../capability/schema.ts";
import { compiler, hasFlag, isNothing, isReference, isUnresolved } from "./compiler.ts";
import { orNull } from "./structure-to-schema.ts";
import type { TypeLocation, Refusal } from "./type-location.ts";
import { isPublicType } from "./project.ts";
import { SchemaWriter } from "./type-to-schema.ts";

interface DescribedOutput {
  /** Undefined for void, any, and types that are MCP results. */
  readonly schema: JsonSchema | undefined;
  readonly isGenerator: boolean;
  readonly refusals: readonly Refusal[];
}

const GENERATORS = ["Generator", "AsyncGenerator", "IterableIterator", "AsyncIterableIterator"];
const WHOLE_RESULTS = ["ToolResult", "ContentBlock"];

export function describeOutput(options: {
  program: ts.Program;
  signature: ts.Signature;
  node: ts.Node;
  text: string | undefined;
}): DescribedOutput {
  const { program, signature, node, text } = options;
  const writer = new SchemaWriter(program, "output");
  const { checker } = writer;
  const returned = checker.getReturnTypeOfSignature(signature);
  const awaited = checker.getAwaitedType(returned) ?? returned;
  const isGenerator = isGeneratorType(awaited);
  // A generator yields progress and returns the result.
  const result = isGenerator && isReference(awaited) ? checker.getTypeArguments(awaited)[1] : awaited;
  const value = result === undefined ? undefined : (checker.getAwaitedType(result) ?? result);
  if (value === undefined || promisesNothing(checker, value)) return { schema: undefined, isGenerator, refusals: [] };
  const location: TypeLocation = { path: "the result", pointer: "", node };
  const schema = orNull(value, writer.toSchema(value, location));
  const described = text === undefined || text === "" ? schema : { ...schema, description: text };
  const hasDefinitions = Object.keys(writer.definitions).length > 0;
  return {
    schema: hasDefinitions ? { ...described, $defs: writer.definitions } : described,
    isGenerator,
    refusals: writer.refusals,
  };
}

function isGeneratorType(type: ts.Type): boolean {
  return GENERATORS.includes(type.getSymbol()?.name ?? "");
}

function promisesNothing(checker: ts.TypeChecker, type: ts.Type): boolean {
  if (hasFlag(type, compiler.TypeFlags.Any) && !isUnresolved(type)) return true;
  if (isNothing(type) || hasFlag(type, compiler.TypeFlags.Unknown | compiler.TypeFlags.Never)) return true;
  return isWholeResult(checker, type);
}

/** Content blocks and MCP results are sent to the client unchanged. */
function isWholeResult(checker: ts.TypeChecker, type: ts.Type): boolean {
  if (isPublicType(type, WHOLE_RESULTS)) return true;
  if (type.isUnion() && type.types.every((member) => isWholeResult(checker, member))) return true;
  const [item] = isReference(type) && checker.isArrayType(type) ? checker.getTypeArguments(type) : [];
  return item !== undefined && isWholeResult(checker, item);
}
