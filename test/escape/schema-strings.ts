/** The part of JSON Schema that tools use for their input. */
export interface InputSchema {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, InputSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: unknown;
  readonly anyOf?: readonly InputSchema[];
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
}

export interface StringPlace {
  /** As in `env.*`, `args[]` or `labels.<key>`. */
  readonly name: string;
  /** The arguments with a text in this place, and whatever else the tool needs. */
  fill(text: string): Record<string, unknown>;
}

/** Every place in a tool's input that takes a text: fields, keys and values of maps, items of lists, at any depth. */
export function stringPlaces(schema: InputSchema, needed: Readonly<Record<string, unknown>>): StringPlace[] {
  const required = Object.fromEntries((schema.required ?? []).map((field) => [field, needed[field] ?? "true"]));
  return Object.entries(schema.properties ?? {}).flatMap(([field, property]) =>
    placesIn(property, field).map(({ name, make }) => ({
      name,
      fill: (text: string) => ({ ...required, [field]: make(text) }),
    })),
  );
}

interface Place {
  readonly name: string;
  make(text: string): unknown;
}

function placesIn(schema: InputSchema, name: string): Place[] {
  const choices = schema.anyOf?.flatMap((choice) => placesIn(choice, name)) ?? [];
  if (schema.type === "string" || schema.enum?.some((value) => typeof value === "string") === true)
    return [...choices, { name, make: (text) => text }];
  if (schema.type === "array" && isSchema(schema.items))
    return [...choices, ...placesIn(schema.items, `${name}[]`).map((place) => wrap(place, (value) => [value]))];
  if (schema.type !== "object") return choices;
  const fields = Object.entries(schema.properties ?? {}).flatMap(([field, property]) =>
    placesIn(property, `${name}.${field}`).map((place) => wrap(place, (value) => ({ [field]: value }))),
  );
  const values = isSchema(schema.additionalProperties)
    ? [
        ...placesIn(schema.additionalProperties, `${name}.*`).map((place) => wrap(place, (value) => ({ KEY: value }))),
        { name: `${name}.<key>`, make: (text: string) => ({ [text]: "value" }) },
      ]
    : [];
  return [...choices, ...fields, ...values];
}

function wrap({ name, make }: Place, around: (value: unknown) => unknown): Place {
  return { name, make: (text) => around(make(text)) };
}

function isSchema(value: unknown): value is InputSchema {
  return typeof value === "object" && value !== null;
}
