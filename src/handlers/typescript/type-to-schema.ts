import type ts from "typescript-6";
import type { JsonSchema } from "../../capability/schema.ts";
import {
  compiler,
  hasFlag,
  isLibrarySymbol,
  isLibraryType,
  isNothing,
  isReference,
  isUnresolved,
  literalValue,
  isDate,
} from "./compiler.ts";
import { docOfSymbol } from "./doc-comment.ts";
import { objectToSchema, unionToSchema, arrayToSchema, tupleToSchema, templatePattern } from "./structure-to-schema.ts";
import { LATER_ITEMS, type TypeLocation, type Refusal } from "./type-location.ts";
import { fixFor, unresolvedRefusal } from "./refused-types.ts";

/** A larger schema is useless to a model, and a type that grows with every level would never end. */
const MAX_DEPTH = 40;
const MAX_TYPES = 3000;

const PRIMITIVE: ts.TypeFlags =
  compiler.TypeFlags.StringLike |
  compiler.TypeFlags.NumberLike |
  compiler.TypeFlags.BooleanLike |
  compiler.TypeFlags.TemplateLiteral |
  compiler.TypeFlags.StringMapping;

interface OpenType {
  readonly type: ts.Type;
  /** Set when the type contains itself. */
  name?: string;
}

/** Translates the types of one signature. Recursive types become entries of `definitions`. */
export class SchemaWriter {
  readonly checker: ts.TypeChecker;
  readonly definitions: Record<string, JsonSchema> = {};
  readonly dates = new Set<string>();
  readonly refusals: Refusal[] = [];
  readonly #open: OpenType[] = [];
  readonly #names = new Map<ts.Type, string>();
  #typeCount = 0;

  readonly program: ts.Program;
  /** Input is closed: unknown fields are errors. Output is open: a function may return more than its type says. */
  readonly side: "input" | "output";

  constructor(program: ts.Program, side: "input" | "output") {
    this.program = program;
    this.side = side;
    this.checker = program.getTypeChecker();
  }

  refuse(refusal: Refusal): JsonSchema {
    if (!this.refusals.some(({ message }) => message === refusal.message)) this.refusals.push(refusal);
    return {};
  }

  /** Records a Date field of the input, whose text is converted to a Date before the call. */
  addDate({ pointer }: TypeLocation): void {
    if (this.side === "input") this.dates.add(pointer);
  }

  toSchema(type: ts.Type, location: TypeLocation): JsonSchema {
    return this.#simple(type) ?? this.#refused(type, location) ?? this.#nested(type, location);
  }

  #simple(type: ts.Type): JsonSchema | undefined {
    const literal = literalValue(type);
    if (literal !== undefined) return { type: typeof literal, const: literal };
    if (hasFlag(type, compiler.TypeFlags.Unknown)) return {};
    if (hasFlag(type, compiler.TypeFlags.Any) && !isUnresolved(type)) return {};
    if (hasFlag(type, compiler.TypeFlags.String)) return { type: "string" };
    // A computed enum member has no literal value.
    if (hasFlag(type, compiler.TypeFlags.Number | compiler.TypeFlags.Enum) && !type.isUnion())
      return { type: "number" };
    if (hasFlag(type, compiler.TypeFlags.Boolean)) return { type: "boolean" };
    if (hasFlag(type, compiler.TypeFlags.Null)) return { type: "null" };
    if (hasFlag(type, compiler.TypeFlags.NonPrimitive)) return { type: "object" };
    return undefined;
  }

  #refused(type: ts.Type, location: TypeLocation): JsonSchema | undefined {
    if (isUnresolved(type)) return this.refuse(unresolvedRefusal(this.checker, location));
    if (isDate(type, this.program) || type.isUnion()) return undefined;
    const fix = isNothing(type) ? "write null, or leave it out" : fixFor(type, this.program);
    if (fix === undefined) return undefined;
    const name = this.checker.typeToString(type);
    return this.refuse({ location, message: `${location.path} has the type ${name}, which JSON cannot express`, fix });
  }

  #nested(type: ts.Type, location: TypeLocation): JsonSchema {
    if (hasFlag(type, compiler.TypeFlags.TemplateLiteral | compiler.TypeFlags.StringMapping))
      return this.#template(type, location);
    if (hasFlag(type, compiler.TypeFlags.Instantiable)) {
      const constraint = this.checker.getBaseConstraintOfType(type);
      return constraint === undefined || constraint === type ? {} : this.toSchema(constraint, location);
    }
    if (isDate(type, this.program)) return this.#date(location);
    const brandless = type.isIntersection() ? type.types.find((part) => hasFlag(part, PRIMITIVE)) : undefined;
    // A brand such as string & { brand: "Id" } exists for the type checker only.
    if (brandless !== undefined) return this.toSchema(brandless, location);
    return this.#recursive(type, location);
  }

  #template(type: ts.Type, location: TypeLocation): JsonSchema {
    const pattern = templatePattern(type);
    if (pattern !== undefined) return { type: "string", pattern };
    const message = `${location.path} has the type ${this.checker.typeToString(type)}, which has no pattern`;
    return this.refuse({ location, message, fix: "write string with the tag @pattern" });
  }

  #date(location: TypeLocation): JsonSchema {
    if (this.side === "input" && location.pointer.split("/").includes(LATER_ITEMS)) {
      const message = `${location.path} is a Date in the rest of a tuple, whose position cannot be expressed`;
      return this.refuse({
        location,
        message,
        fix: "write string with the tag @format date-time, or an array of Date",
      });
    }
    this.addDate(location);
    return { type: "string", format: "date-time" };
  }

  #recursive(type: ts.Type, location: TypeLocation): JsonSchema {
    const seen = this.#open.find((entry) => entry.type === type);
    if (seen !== undefined) return this.#reference((seen.name ??= this.#nameOf(type)));
    const known = this.#names.get(type);
    if (known !== undefined) return this.#reference(known);
    this.#typeCount += 1;
    if (this.#open.length > MAX_DEPTH || this.#typeCount > MAX_TYPES) return this.#tooLarge(location);
    const entry: OpenType = { type };
    const datesBefore = this.dates.size;
    this.#open.push(entry);
    const schema = this.#described(type, this.#structure(type, location));
    this.#open.pop();
    if (entry.name === undefined) return schema;
    this.definitions[entry.name] = schema;
    if (this.dates.size > datesBefore) this.#refuseDeepDate(type, location);
    return this.#reference(entry.name);
  }

  #structure(type: ts.Type, location: TypeLocation): JsonSchema {
    if (type.isUnion()) return unionToSchema(this, type, location);
    if (isReference(type) && this.checker.isTupleType(type)) return tupleToSchema(this, type, location);
    if (isReference(type) && this.checker.isArrayType(type)) return arrayToSchema(this, type, location);
    return objectToSchema(this, type, location);
  }

  #described(type: ts.Type, schema: JsonSchema): JsonSchema {
    const symbol = type.aliasSymbol ?? (type.isClassOrInterface() ? type.getSymbol() : undefined);
    if (symbol === undefined || isLibraryType(type, this.program) || isLibrarySymbol(symbol, this.program))
      return schema;
    const { text } = docOfSymbol(symbol);
    return text === "" ? schema : { description: text, ...schema };
  }

  #reference(name: string): JsonSchema {
    return { $ref: `#/$defs/${name}` };
  }

  #nameOf(type: ts.Type): string {
    const written = (type.aliasSymbol ?? type.getSymbol())?.name ?? "";
    const base = /^[A-Za-z]\w*$/.test(written) && !written.startsWith("__") ? written : "Type";
    const taken = new Set(this.#names.values());
    let name = base;
    for (let count = 2; taken.has(name); count += 1) name = `${base}${count}`;
    this.#names.set(type, name);
    return name;
  }

  /** Names the outermost type, so that the problem is reported once. */
  #tooLarge(location: TypeLocation): JsonSchema {
    const outermost = this.#open[0]?.type;
    const name = outermost === undefined ? location.path : this.checker.typeToString(outermost);
    const message = `${name} has too many levels or fields for a schema`;
    return this.refuse({ location, message, fix: "write an interface with the fields that matter, or use Pick" });
  }

  #refuseDeepDate(type: ts.Type, location: TypeLocation): void {
    const message = `${this.checker.typeToString(type)} contains itself and a Date, whose position cannot be expressed`;
    this.refuse({ location, message, fix: "write string with the tag @format date-time in place of Date" });
  }
}
