import { isRecord } from "../../platform/records.ts";
import type ts from "typescript-6";
import type { JsonSchema } from "../../capability/schema.ts";
import type { CallStyle } from "../handler-description.ts";
import { compiler, hasFlag, isObject, isDate } from "./compiler.ts";
import { constrained, documentedSchema, isConstraint } from "./constraint-tags.ts";
import { type Doc, type DocTag, docOfNode } from "./doc-comment.ts";
import { literalOf } from "./literal-values.ts";
import type { TypeLocation, Refusal } from "./type-location.ts";
import { isOptionalField } from "./structure-to-schema.ts";
import type { Parameter } from "./exported-functions.ts";
import { fixFor } from "./refused-types.ts";
import { SchemaWriter } from "./type-to-schema.ts";

interface DescribedInput {
  readonly schema: JsonSchema;
  readonly call: CallStyle;
  readonly dates: readonly string[];
  readonly refusals: readonly Refusal[];
}

interface InputSource {
  readonly program: ts.Program;
  /** Without the context. */
  readonly parameters: readonly Parameter[];
  readonly context: number | undefined;
  readonly doc: Doc;
}

/** One object parameter: its fields are the tool's. Otherwise each parameter is a field. */
export function describeInput(source: InputSource): DescribedInput {
  const writer = new SchemaWriter(source.program, "input");
  const [only] = source.parameters;
  const isObjectStyle = source.parameters.length === 1 && only !== undefined && takesFields(writer, only);
  const schema = isObjectStyle ? fieldsOf(writer, only, source.doc) : positionalSchema(writer, source);
  const context = source.context === undefined ? {} : { context: source.context };
  const names = Object.keys(isFields(schema["properties"]) ? schema["properties"] : {});
  const hasRest = !isObjectStyle && source.parameters.some(({ isRest }) => isRest);
  refuseAmbiguousDates(writer, schema, only);
  return {
    schema: Object.keys(writer.definitions).length === 0 ? schema : { ...schema, $defs: writer.definitions },
    call: {
      style: isObjectStyle ? "object" : "positional",
      parameters: names,
      ...(hasRest ? { rest: true } : {}),
      ...context,
    },
    dates: [...writer.dates],
    refusals: writer.refusals,
  };
}

/** Whether the parameter's fields become the tool's fields. Not all clients support a union, a record or a list at the root. */
function takesFields({ checker, program }: SchemaWriter, { type, isOptional, isRest }: Parameter): boolean {
  const bare = isOptional ? withoutNothing(type) : type;
  if (bare === undefined || isRest || !isFieldsType(bare)) return false;
  if (checker.isArrayType(bare) || checker.isTupleType(bare) || isDate(bare, program)) return false;
  if (fixFor(bare, program) !== undefined) return false;
  const fields = checker.getPropertiesOfType(bare);
  if (fields.length === 0 && checker.getIndexInfosOfType(bare).length > 0) return false;
  // The whole object is optional, but some of its fields are not: it must be a field of its own to express that.
  return !isOptional || fields.every((field) => isOptionalField(checker, field));
}

function isFieldsType(type: ts.Type): boolean {
  return isObject(type) || (type.isIntersection() && type.types.every(isObject));
}

function withoutNothing(type: ts.Type): ts.Type | undefined {
  if (!type.isUnion()) return type;
  const rest = type.types.filter((member) => !hasFlag(member, compiler.TypeFlags.Undefined));
  return rest.length === 1 ? rest[0] : undefined;
}

function fieldsOf(writer: SchemaWriter, parameter: Parameter, doc: Doc): JsonSchema {
  const { type, node, declaration, name } = parameter;
  const location: TypeLocation = { path: "", pointer: "", node };
  const found = writer.toSchema(withoutNothing(type) ?? type, location);
  const { description: _, ...schema } = resolved(writer, found);
  const properties = isFields(schema["properties"]) ? schema["properties"] : {};
  const defaults = declaration === undefined ? new Map<string, unknown>() : boundDefaults(writer.checker, declaration);
  const documented = Object.entries(properties).map(([field, property]): [string, JsonSchema] => {
    const value = defaults.get(field);
    const withDefault = value === undefined ? property : { ...property, default: value };
    return [field, fieldDoc(writer, { schema: withDefault, doc, names: fieldNames(name, field), node })];
  });
  return { additionalProperties: false, ...schema, type: "object", properties: Object.fromEntries(documented) };
}

/** A recursive root type is a definition; its body is needed at the root too. */
function resolved(writer: SchemaWriter, schema: JsonSchema): JsonSchema {
  const name = typeof schema["$ref"] === "string" ? schema["$ref"].replace("#/$defs/", "") : "";
  return writer.definitions[name] ?? schema;
}

function fieldNames(parameter: string, field: string): readonly string[] {
  return [`${parameter}.${field}`, field];
}

function positionalSchema(writer: SchemaWriter, { parameters, doc }: InputSource): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  const required: string[] = [];
  const written = [...doc.parameters.keys()].filter((name) => !name.includes("."));
  for (const [index, parameter] of parameters.entries()) {
    // A destructured parameter has no name; the doc comment may give one.
    const name = parameter.name === "" ? (written[index] ?? "") : parameter.name;
    const location: TypeLocation = { path: name, pointer: `/${name}`, node: parameter.node };
    if (name === "") {
      const message = `parameter ${index + 1} is destructured beside others and has no name`;
      writer.refuse({ location, message, fix: "give it a name, or take one object for all" });
      continue;
    }
    properties[name] = parameterSchema(writer, { parameter, location, doc });
    if (!parameter.isOptional) required.push(name);
  }
  return {
    type: "object",
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
}

function parameterSchema(
  writer: SchemaWriter,
  { parameter, location, doc }: { parameter: Parameter; location: TypeLocation; doc: Doc },
): JsonSchema {
  const { type, declaration, isUntyped, node } = parameter;
  const schema = isUntyped ? refuseUntyped(writer, location) : writer.toSchema(type, location);
  const value =
    declaration?.initializer === undefined
      ? bracketDefault(declaration)
      : literalOf(writer.checker, declaration.initializer);
  const withDefault = value === undefined ? schema : { ...schema, default: value };
  const own = declaration === undefined ? undefined : docOfNode(declaration);
  const described =
    own === undefined ? withDefault : documentedSchema(writer, { schema: withDefault, doc: own, location });
  return fieldDoc(writer, { schema: described, doc, names: [location.path], node });
}

function refuseUntyped(writer: SchemaWriter, location: TypeLocation): JsonSchema {
  const message = `the parameter ${location.path} has no type`;
  return writer.refuse({
    location,
    message,
    fix: `write its type, in JavaScript as "@param {string} ${location.path}"`,
  });
}

/** The doc comment of the function about one field: `@param x text @minimum 1`, `@minimum x 1`. */
function fieldDoc(
  writer: SchemaWriter,
  { schema, doc, names, node }: { schema: JsonSchema; doc: Doc; names: readonly string[]; node: ts.Node },
): JsonSchema {
  const [path = ""] = names.toReversed();
  const isNamed = (written: string): boolean =>
    names.includes(written) || (written.includes(".") && written.slice(written.indexOf(".") + 1) === path);
  const text = [...doc.parameters].find(([written, words]) => words !== "" && isNamed(written))?.[1];
  const tags = doc.tags.flatMap((tag): DocTag[] => {
    if (!isConstraint(tag.name)) return [];
    if (tag.parameter !== undefined) return isNamed(tag.parameter) ? [tag] : [];
    const [first = "", ...rest] = tag.text.split(/\s+/);
    return isNamed(first) ? [{ name: tag.name, text: rest.join(" ") }] : [];
  });
  const described = text === undefined ? schema : { ...schema, description: text };
  return constrained(writer, { schema: described, tags, location: { path, pointer: `/${path}`, node } });
}

/** `({ limit = 10 }: Options)`: the default is in the binding pattern. */
function boundDefaults(checker: ts.TypeChecker, { name }: ts.ParameterDeclaration): Map<string, unknown> {
  const defaults = new Map<string, unknown>();
  if (!compiler.isObjectBindingPattern(name)) return defaults;
  for (const { propertyName, name: bound, initializer } of name.elements) {
    const field = propertyName ?? bound;
    const value = initializer === undefined ? undefined : literalOf(checker, initializer);
    if (value !== undefined && (compiler.isIdentifier(field) || compiler.isStringLiteral(field)))
      defaults.set(field.text, value);
  }
  return defaults;
}

/** `@param {number} [limit=10]`: the compiler's parser skips the value. */
function bracketDefault(declaration: ts.ParameterDeclaration | undefined): unknown {
  const [tag] = declaration === undefined ? [] : compiler.getJSDocParameterTags(declaration);
  const text = tag === undefined ? undefined : /\[\s*[\w$.]+\s*=\s*([^\]]+|\[.*?\])\s*\]/.exec(tag.getText())?.[1];
  if (text === undefined) return undefined;
  const file = compiler.createSourceFile("default.ts", `(${text})`, compiler.ScriptTarget.Latest, true);
  const [statement] = file.statements;
  return statement !== undefined && compiler.isExpressionStatement(statement)
    ? literalOf(undefined, statement.expression)
    : undefined;
}

function refuseAmbiguousDates(writer: SchemaWriter, schema: JsonSchema, parameter: Parameter | undefined): void {
  if (parameter === undefined) return;
  for (const pointer of ambiguousDates(schema, writer.dates)) {
    const path = pointer.slice(1).replaceAll("/", ".");
    const message = `${path} is a Date in one member of a union and text in another: the call cannot tell them apart`;
    writer.refuse({
      location: { path, pointer, node: parameter.node },
      message,
      fix: "write string with the tag @format date-time in place of Date",
    });
  }
}

function isFields(value: unknown): value is Record<string, JsonSchema> {
  return typeof value === "object" && value !== null;
}

/** Pointers that are a Date in one member of a union and text in another: the call could not tell them apart. */
function ambiguousDates(schema: JsonSchema, pointers: Iterable<string>): string[] {
  return [...pointers].filter((pointer) => {
    const steps = pointer
      .split("/")
      .slice(1)
      .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    return leavesAt([schema], steps).some((leaf) => leaf["type"] === "string" && leaf["format"] !== "date-time");
  });
}

function leavesAt(schemas: readonly JsonSchema[], [step, ...rest]: readonly string[]): readonly JsonSchema[] {
  const branches = schemas.flatMap(branchesOf);
  if (step === undefined) return branches;
  return leavesAt(
    branches.flatMap((branch) => below(branch, step)),
    rest,
  );
}

function branchesOf(schema: JsonSchema): JsonSchema[] {
  const branches: unknown = schema["anyOf"] ?? schema["oneOf"];
  return Array.isArray(branches) ? branches.filter(isRecord).flatMap(branchesOf) : [schema];
}

function below(schema: JsonSchema, step: string): JsonSchema[] {
  const { properties, prefixItems, items, additionalProperties } = schema;
  if (step === "*") return [items, additionalProperties].filter(isRecord);
  const inTuple: unknown = Array.isArray(prefixItems) ? prefixItems[Number(step)] : undefined;
  const field = isRecord(properties) ? properties[step] : undefined;
  return [inTuple, field].filter(isRecord);
}
