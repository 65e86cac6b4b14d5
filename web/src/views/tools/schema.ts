/** The part of JSON Schema that a form can show. Everything else becomes a JSON field. */
export interface FieldSchema {
  readonly name: string;
  readonly kind: "text" | "number" | "boolean" | "choice" | "json";
  readonly isRequired: boolean;
  readonly description: string;
  readonly choices: readonly string[];
  readonly initial: string;
}

export function fieldsOf(schema: unknown): readonly FieldSchema[] {
  const { properties, required } = asRecord(schema);
  const names = Array.isArray(required) ? required : [];
  return Object.entries(asRecord(properties)).map(([name, property]) =>
    fieldOf(name, asRecord(property), names.includes(name)),
  );
}

function fieldOf(name: string, property: Readonly<Record<string, unknown>>, isRequired: boolean): FieldSchema {
  const { description, default: initial } = property;
  const choices = Array.isArray(property["enum"]) ? property["enum"].map(String) : [];
  return {
    name,
    kind: kindOf(property, choices),
    isRequired,
    description: typeof description === "string" ? description : "",
    choices,
    initial: initial === undefined ? "" : typeof initial === "string" ? initial : JSON.stringify(initial),
  };
}

function kindOf({ type }: Readonly<Record<string, unknown>>, choices: readonly string[]): FieldSchema["kind"] {
  if (type === "string") return choices.length > 0 ? "choice" : "text";
  if (type === "number" || type === "integer") return "number";
  return type === "boolean" ? "boolean" : "json";
}

/** Converts the typed text to arguments. Empty fields are omitted. */
export function argumentsOf(
  fields: readonly FieldSchema[],
  typed: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const pairs = fields.flatMap((field) => {
    const text = typed[field.name] ?? field.initial;
    return text === "" && !(field.isRequired && field.kind === "text")
      ? []
      : [[field.name, valueOf(field, text)] as const];
  });
  return Object.fromEntries(pairs);
}

function valueOf({ name, kind }: FieldSchema, text: string): unknown {
  switch (kind) {
    case "text":
    case "choice":
      return text;
    case "number":
      return Number(text);
    case "boolean":
      return text === "true";
    case "json":
      try {
        return JSON.parse(text);
      } catch (error) {
        throw new Error(`${name} is not JSON. Put texts into quotation marks.`, { cause: error });
      }
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}
