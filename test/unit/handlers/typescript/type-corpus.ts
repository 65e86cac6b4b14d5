/** Types and the schemas that they must give as an input field, written by hand from what the type says. */
export interface TypeCase {
  readonly type: string;
  /** Declarations that the type needs. */
  readonly given?: string;
  readonly schema: unknown;
  readonly defs?: unknown;
  readonly dates?: readonly string[];
  /** Values that the type takes: the property test makes mutants of them. */
  readonly samples: readonly unknown[];
  /** For the compiler as judge, where JSON text is not assignable to the type itself; false where it cannot judge. */
  readonly judge?: string | false;
  /** The compiler lets a literal carry fields of several members of a union; the schema wants one of them. */
  readonly isMixedUnion?: boolean;
}

const STRING = { type: "string" };
const NUMBER = { type: "number" };
const BOOLEAN = { type: "boolean" };
const NULL = { type: "null" };
const DATE = { type: "string", format: "date-time" };

/** A closed object whose fields are all required, except those named. */
function object(properties: Record<string, unknown>, optional: readonly string[] = []): object {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}), additionalProperties: false };
}

function text(value: string): object {
  return { type: "string", const: value };
}

function list(items: unknown): object {
  return { type: "array", items };
}

const POINT = "interface Point { x: number; y: number }";
const USER = "interface User { id: number; name: string; email?: string; readonly admin: boolean }";
const POINT_SCHEMA = object({ x: NUMBER, y: NUMBER });

const PRIMITIVES: readonly TypeCase[] = [
  { type: "string", schema: STRING, samples: ["a", ""] },
  { type: "number", schema: NUMBER, samples: [1, -2.5] },
  { type: "boolean", schema: BOOLEAN, samples: [true, false] },
  { type: "null", schema: NULL, samples: [null] },
  { type: "unknown", schema: {}, samples: [1, "a", null, { a: [1] }] },
  { type: "any", schema: {}, samples: [1, "a", null, { a: [1] }] },
  // The compiler counts lists as objects.
  { type: "object", schema: { type: "object" }, samples: [{ a: 1 }, {}], judge: "Record<string, unknown>" },
  // Nearly everything is assignable to {}; a field of that type is meant to be an object.
  { type: "{}", schema: { type: "object" }, samples: [{ a: 1 }, {}], judge: "Record<string, unknown>" },
];

const LITERALS: readonly TypeCase[] = [
  { type: '"a"', schema: text("a"), samples: ["a"] },
  { type: "42", schema: { type: "number", const: 42 }, samples: [42] },
  { type: "true", schema: { type: "boolean", const: true }, samples: [true] },
  { type: '"a" | "b" | "c"', schema: { type: "string", enum: ["a", "b", "c"] }, samples: ["a", "c"] },
  { type: "1 | 2 | -3", schema: { type: "number", enum: [1, 2, -3] }, samples: [1, -3] },
  {
    type: '"auto" | 1 | 2',
    schema: {
      anyOf: [text("auto"), { type: "number", enum: [1, 2] }],
    },
    samples: ["auto", 2],
  },
  { type: '"on" | false', schema: { anyOf: [text("on"), { type: "boolean", const: false }] }, samples: ["on", false] },
  { type: '"a" | (string & {})', schema: { anyOf: [text("a"), STRING] }, samples: ["a", "zzz"] },
  { type: "keyof Point", given: POINT, schema: { type: "string", enum: ["x", "y"] }, samples: ["x"] },
  {
    type: "(typeof LEVELS)[number]",
    given: 'const LEVELS = ["low", "high"] as const;',
    schema: { type: "string", enum: ["low", "high"] },
    samples: ["low"],
  },
];

const ENUMS: readonly TypeCase[] = [
  {
    type: "Color",
    given: 'enum Color { Red = "red", Blue = "blue" }',
    schema: { type: "string", enum: ["red", "blue"] },
    samples: ["red"],
    judge: '"red" | "blue"',
  },
  { type: "Size", given: "enum Size { S, M, L }", schema: { type: "number", enum: [0, 1, 2] }, samples: [0, 2] },
  {
    type: "Flag",
    given: "const enum Flag { A = 1, B = 2 }",
    schema: { type: "number", enum: [1, 2] },
    samples: [1],
  },
  { type: "Only", given: 'enum Only { One = "one" }', schema: text("one"), samples: ["one"], judge: '"one"' },
  {
    type: "Mixed",
    given: 'enum Mixed { A = "a", B = 7 }',
    schema: { anyOf: [text("a"), { type: "number", const: 7 }] },
    samples: ["a", 7],
    judge: '"a" | 7',
  },
  {
    type: "Color.Red",
    given: 'enum Color { Red = "red", Blue = "blue" }',
    schema: text("red"),
    samples: ["red"],
    judge: '"red"',
  },
];

const UNIONS: readonly TypeCase[] = [
  { type: "string | number", schema: { anyOf: [STRING, NUMBER] }, samples: ["a", 1] },
  { type: "string | null", schema: { anyOf: [STRING, NULL] }, samples: ["a", null] },
  { type: "boolean | string", schema: { anyOf: [BOOLEAN, STRING] }, samples: [true, "a"] },
  { type: '"a" | "b" | null', schema: { anyOf: [{ type: "string", enum: ["a", "b"] }, NULL] }, samples: ["b", null] },
  { type: "string | string[]", schema: { anyOf: [STRING, list(STRING)] }, samples: ["a", ["a", "b"]] },
  {
    type: "{ a: string } | { b: number }",
    schema: { anyOf: [object({ a: STRING }), object({ b: NUMBER })] },
    samples: [{ a: "x" }, { b: 1 }],
    isMixedUnion: true,
  },
  {
    type: "Shape",
    given: 'type Shape = { kind: "circle"; radius: number } | { kind: "square"; side: number };',
    schema: {
      oneOf: [object({ kind: text("circle"), radius: NUMBER }), object({ kind: text("square"), side: NUMBER })],
    },
    samples: [
      { kind: "circle", radius: 1 },
      { kind: "square", side: 2 },
    ],
  },
  {
    type: "Reply",
    given: "type Reply = { ok: true; value: string } | { ok: false; error: string };",
    schema: {
      oneOf: [
        object({ ok: { type: "boolean", const: true }, value: STRING }),
        object({ ok: { type: "boolean", const: false }, error: STRING }),
      ],
    },
    samples: [
      { ok: true, value: "v" },
      { ok: false, error: "e" },
    ],
  },
  {
    type: "Job",
    given:
      'type Job = { state: "new" | "queued" } | { state: "done"; code: number } | { state: "failed"; why?: string };',
    schema: {
      oneOf: [
        object({ state: { type: "string", enum: ["new", "queued"] } }),
        object({ state: text("done"), code: NUMBER }),
        object({ state: text("failed"), why: STRING }, ["why"]),
      ],
    },
    samples: [{ state: "new" }, { state: "done", code: 0 }, { state: "failed", why: "x" }, { state: "failed" }],
  },
  {
    type: "Either",
    given: "type Either = { id: number; name?: never } | { name: string; id?: never };",
    schema: { anyOf: [object({ id: NUMBER }), object({ name: STRING })] },
    samples: [{ id: 1 }, { name: "a" }],
  },
];

const LISTS: readonly TypeCase[] = [
  { type: "string[]", schema: list(STRING), samples: [["a", "b"], []] },
  { type: "Array<number>", schema: list(NUMBER), samples: [[1, 2]] },
  { type: "readonly string[]", schema: list(STRING), samples: [["a"]] },
  { type: "ReadonlyArray<boolean>", schema: list(BOOLEAN), samples: [[true]] },
  { type: "number[][]", schema: list(list(NUMBER)), samples: [[[1], [2, 3]]] },
  { type: "(string | null)[]", schema: list({ anyOf: [STRING, NULL] }), samples: [["a", null]] },
  { type: "(string | undefined)[]", schema: list(STRING), samples: [["a"]] },
  { type: "Point[]", given: POINT, schema: list(POINT_SCHEMA), samples: [[{ x: 1, y: 2 }]] },
  { type: "never[]", schema: { type: "array", maxItems: 0 }, samples: [[]] },
  {
    type: "[string, number]",
    schema: { type: "array", prefixItems: [STRING, NUMBER], maxItems: 2, minItems: 2 },
    samples: [["a", 1]],
  },
  {
    type: "[x: number, y?: number]",
    schema: { type: "array", prefixItems: [NUMBER, NUMBER], maxItems: 2, minItems: 1 },
    samples: [[1], [1, 2]],
  },
  {
    type: "[string, ...number[]]",
    schema: { type: "array", prefixItems: [STRING], items: NUMBER, minItems: 1 },
    samples: [["a"], ["a", 1, 2]],
  },
  {
    type: "readonly [boolean, string?]",
    schema: { type: "array", prefixItems: [BOOLEAN, STRING], maxItems: 2, minItems: 1 },
    samples: [[true], [true, "a"]],
  },
  { type: "[]", schema: { type: "array", maxItems: 0 }, samples: [[]] },
  { type: "[...string[]]", schema: list(STRING), samples: [["a"], []] },
];

const RECORDS: readonly TypeCase[] = [
  {
    type: "Record<string, number>",
    schema: { type: "object", additionalProperties: NUMBER },
    samples: [{ a: 1, b: 2 }, {}],
  },
  {
    type: "{ [key: string]: string[] }",
    schema: { type: "object", additionalProperties: list(STRING) },
    samples: [{ a: ["x"] }],
  },
  { type: "Record<string, unknown>", schema: { type: "object", additionalProperties: {} }, samples: [{ a: 1 }, {}] },
  {
    type: 'Record<"a" | "b", number>',
    schema: object({ a: NUMBER, b: NUMBER }),
    samples: [{ a: 1, b: 2 }],
  },
  {
    type: 'Partial<Record<"a" | "b", number>>',
    schema: object({ a: NUMBER, b: NUMBER }, ["a", "b"]),
    samples: [{ a: 1 }, {}],
  },
  {
    type: "{ id: string; [other: string]: string }",
    schema: { type: "object", properties: { id: STRING }, required: ["id"], additionalProperties: STRING },
    samples: [{ id: "a", b: "c" }],
  },
  {
    type: "{ [index: number]: string }",
    schema: { type: "object", patternProperties: { "^(0|[1-9]\\d*)$": STRING }, additionalProperties: false },
    samples: [{ 1: "a" }],
    // The compiler takes lists and other numbers too.
    judge: false,
  },
  {
    type: "{ [header: `x-${string}`]: number }",
    schema: { type: "object", patternProperties: { "^x-[\\s\\S]*$": NUMBER }, additionalProperties: false },
    samples: [{ "x-a": 1 }, {}],
  },
];

const OBJECTS: readonly TypeCase[] = [
  { type: "Point", given: POINT, schema: POINT_SCHEMA, samples: [{ x: 1, y: 2 }] },
  { type: "{ a?: string }", schema: object({ a: STRING }, ["a"]), samples: [{ a: "x" }, {}] },
  {
    type: "{ a: string | undefined }",
    schema: object({ a: STRING }, ["a"]),
    samples: [{ a: "x" }],
    judge: "{ a?: string }",
  },
  { type: "{ a: string | null }", schema: object({ a: { anyOf: [STRING, NULL] } }), samples: [{ a: null }] },
  {
    type: "Line",
    given: `${POINT} interface Line { from: Point; to: Point; label?: string }`,
    schema: object({ from: POINT_SCHEMA, to: POINT_SCHEMA, label: STRING }, ["label"]),
    samples: [{ from: { x: 1, y: 2 }, to: { x: 3, y: 4 } }],
  },
  {
    type: "Page<Point>",
    given: `${POINT} interface Page<T> { items: T[]; next: string | null }`,
    schema: object({ items: list(POINT_SCHEMA), next: { anyOf: [STRING, NULL] } }),
    samples: [{ items: [{ x: 1, y: 2 }], next: null }],
  },
  {
    type: "Box<string>",
    given: "type Box<T, U = number> = { value: T; weight: U };",
    schema: object({ value: STRING, weight: NUMBER }),
    samples: [{ value: "a", weight: 1 }],
  },
  {
    type: "Employee",
    given: "interface Person { name: string } interface Employee extends Person { salary: number }",
    schema: object({ salary: NUMBER, name: STRING }),
    samples: [{ name: "a", salary: 1 }],
  },
  {
    type: "Point & { z: number }",
    given: POINT,
    schema: object({ x: NUMBER, y: NUMBER, z: NUMBER }),
    samples: [{ x: 1, y: 2, z: 3 }],
  },
  {
    type: "{ a: string | number } & { a: string; b?: boolean }",
    schema: object({ a: STRING, b: BOOLEAN }, ["b"]),
    samples: [{ a: "x" }],
  },
  {
    type: 'Pick<User, "id" | "name">',
    given: USER,
    schema: object({ id: NUMBER, name: STRING }),
    samples: [{ id: 1, name: "a" }],
  },
  {
    type: 'Omit<User, "admin">',
    given: USER,
    schema: object({ id: NUMBER, name: STRING, email: STRING }, ["email"]),
    samples: [{ id: 1, name: "a", email: "b" }],
  },
  {
    type: "Partial<User>",
    given: USER,
    schema: object({ id: NUMBER, name: STRING, email: STRING, admin: BOOLEAN }, ["id", "name", "email", "admin"]),
    samples: [{ id: 1 }, {}],
  },
  {
    type: "Required<User>",
    given: USER,
    schema: object({ id: NUMBER, name: STRING, email: STRING, admin: BOOLEAN }),
    samples: [{ id: 1, name: "a", email: "b", admin: true }],
  },
  { type: "Readonly<Point>", given: POINT, schema: POINT_SCHEMA, samples: [{ x: 1, y: 2 }] },
  { type: "NonNullable<string | null | undefined>", schema: STRING, samples: ["a"] },
  { type: 'Exclude<"a" | "b" | "c", "b">', schema: { type: "string", enum: ["a", "c"] }, samples: ["a"] },
  { type: 'User["name"]', given: USER, schema: STRING, samples: ["a"] },
  {
    type: "Getters",
    given: `${POINT} type Getters = { [K in keyof Point as \`get_\${K}\`]: Point[K] };`,
    schema: object({ get_x: NUMBER, get_y: NUMBER }),
    samples: [{ get_x: 1, get_y: 2 }],
  },
  {
    type: "Id",
    given: 'type Id = string & { readonly brand: "Id" };',
    schema: STRING,
    samples: ["a"],
    judge: "string",
  },
  { type: 'T extends string ? 1 : "no"', schema: text("no"), given: "type T = number;", samples: ["no"] },
  {
    type: '{ 1: number; "a-b": string }',
    schema: object({ 1: NUMBER, "a-b": STRING }),
    samples: [{ "a-b": "x", 1: 2 }],
  },
];

const TEMPLATES: readonly TypeCase[] = [
  {
    type: "`v${number}`",
    schema: { type: "string", pattern: "^v-?\\d+(\\.\\d+)?([eE][+-]?\\d+)?$" },
    samples: ["v1", "v2.5"],
  },
  {
    type: "`${string}@${string}`",
    schema: { type: "string", pattern: "^[\\s\\S]*@[\\s\\S]*$" },
    samples: ["a@b", "@"],
  },
  {
    type: '`${"a" | "b"}-${1 | 2}`',
    schema: { type: "string", enum: ["a-1", "a-2", "b-1", "b-2"] },
    samples: ["a-1", "b-2"],
  },
  {
    type: "`#${string}.${boolean}`",
    schema: {
      anyOf: [
        { type: "string", pattern: "^#[\\s\\S]*\\.false$" },
        { type: "string", pattern: "^#[\\s\\S]*\\.true$" },
      ],
    },
    samples: ["#a.true"],
  },
  { type: "`${bigint}n`", schema: { type: "string", pattern: "^-?\\d+n$" }, samples: ["12n"] },
  { type: "Uppercase<string>", schema: { type: "string", pattern: "^[^a-z]*$" }, samples: ["ABC", ""] },
];

const DATES: readonly TypeCase[] = [
  { type: "Date", schema: DATE, dates: ["/value"], samples: [], judge: false },
  { type: "Date | null", schema: { anyOf: [DATE, NULL] }, dates: ["/value"], samples: [], judge: false },
  { type: "Date[]", schema: list(DATE), dates: ["/value/*"], samples: [], judge: false },
  {
    type: "{ from: Date; to?: Date }",
    schema: object({ from: DATE, to: DATE }, ["to"]),
    dates: ["/value/from", "/value/to"],
    samples: [],
    judge: false,
  },
  {
    type: "Record<string, { at: Date }>",
    schema: { type: "object", additionalProperties: object({ at: DATE }) },
    dates: ["/value/*/at"],
    samples: [],
    judge: false,
  },
  {
    type: "[Date, string]",
    schema: { type: "array", prefixItems: [DATE, STRING], maxItems: 2, minItems: 2 },
    dates: ["/value/0"],
    samples: [],
    judge: false,
  },
  // Text is welcome as it is, so nothing is made of it.
  { type: "Date | string", schema: STRING, dates: [], samples: ["a"], judge: "string" },
];

const RECURSIVE: readonly TypeCase[] = [
  {
    type: "Tree",
    given: "interface Tree { value: number; children: Tree[] }",
    schema: { $ref: "#/$defs/Tree" },
    defs: { Tree: object({ value: NUMBER, children: list({ $ref: "#/$defs/Tree" }) }) },
    samples: [{ value: 1, children: [{ value: 2, children: [] }] }],
  },
  {
    type: "Link",
    given: "type Link = { next: Link | null; label?: string };",
    schema: { $ref: "#/$defs/Link" },
    defs: { Link: object({ label: STRING, next: { anyOf: [{ $ref: "#/$defs/Link" }, NULL] } }, ["label"]) },
    samples: [{ next: { next: null, label: "a" } }],
  },
  {
    type: "Json",
    given: "type Json = string | number | boolean | null | Json[] | { [key: string]: Json };",
    schema: { $ref: "#/$defs/Json" },
    defs: {
      Json: {
        anyOf: [
          BOOLEAN,
          STRING,
          NUMBER,
          list({ $ref: "#/$defs/Json" }),
          { type: "object", additionalProperties: { $ref: "#/$defs/Json" } },
          NULL,
        ],
      },
    },
    samples: [{ a: [1, "b", null, { c: true }] }],
  },
  {
    type: "{ left: Leaf; right: Leaf }",
    given: "interface Leaf { branch?: Branch } interface Branch { leaves: [Leaf] }",
    schema: object({ left: { $ref: "#/$defs/Leaf" }, right: { $ref: "#/$defs/Leaf" } }),
    defs: {
      Leaf: object(
        {
          branch: object({
            leaves: { type: "array", prefixItems: [{ $ref: "#/$defs/Leaf" }], maxItems: 1, minItems: 1 },
          }),
        },
        ["branch"],
      ),
    },
    samples: [{ left: {}, right: { branch: { leaves: [{}] } } }],
  },
  {
    type: "Expr",
    given: 'type Expr = { op: "num"; value: number } | { op: "neg"; of: Expr };',
    schema: { $ref: "#/$defs/Expr" },
    defs: {
      Expr: {
        oneOf: [object({ op: text("num"), value: NUMBER }), object({ op: text("neg"), of: { $ref: "#/$defs/Expr" } })],
      },
    },
    samples: [{ op: "neg", of: { op: "num", value: 1 } }],
  },
];

export const TYPE_CORPUS: readonly TypeCase[] = [
  ...PRIMITIVES,
  ...LITERALS,
  ...ENUMS,
  ...UNIONS,
  ...LISTS,
  ...RECORDS,
  ...OBJECTS,
  ...TEMPLATES,
  ...DATES,
  ...RECURSIVE,
];
