/** Type hints with the schema that each must give, written by hand. `setup` stands above the function. */
export interface Signature {
  readonly hint: string;
  /** Undefined where only what it accepts is fixed. */
  readonly schema: Readonly<Record<string, unknown>> | undefined;
  readonly definitions?: Readonly<Record<string, unknown>>;
}

const text = { type: "string" };
const integer = { type: "integer" };
const number = { type: "number" };
const boolean = { type: "boolean" };
const nothing = { type: "null" };
const list = (items: object) => ({ type: "array", items });
const unique = (items: object) => ({ type: "array", items, uniqueItems: true });
const record = (values: object | true) => ({ type: "object", additionalProperties: values });
const any = (...anyOf: object[]) => ({ anyOf });
const object = (properties: object, required: string[] = Object.keys(properties)) => ({
  type: "object",
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
});
const pair = (...prefixItems: object[]) => ({
  type: "array",
  minItems: prefixItems.length,
  maxItems: prefixItems.length,
  prefixItems,
});
const decimal = { type: ["string", "number"], pattern: String.raw`^-?[0-9]+(\.[0-9]+)?$` };

export const SETUP = `
import datetime, decimal, enum, pathlib, uuid
from dataclasses import dataclass, field
from typing import *
from typing import Annotated
try:
    from typing import NotRequired, Required
except ImportError:
    from typing_extensions import NotRequired, Required

T = TypeVar("T")
Number = TypeVar("Number", int, float)
Texty = TypeVar("Texty", bound=str)
UserId = NewType("UserId", int)
Json = Union[None, bool, float, str, List["Json"], Dict[str, "Json"]]

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2

class Odd(enum.Enum):
    POINT = (0, 1)
    LINE = (1, 1)

class Address(TypedDict):
    street: str
    zip: NotRequired[str]

class Partial(TypedDict, total=False):
    name: str
    age: Required[int]

class Point(NamedTuple):
    x: int
    y: int = 0

@dataclass
class Item:
    name: str
    price: float = 1.5
    tags: List[str] = field(default_factory=list)

@dataclass
class Described:
    """A thing that says what it is."""
    size: int

@dataclass
class Order:
    items: List[Item]
    color: Color
    to: Optional[Address] = None

@dataclass
class Tree:
    value: int
    children: "List[Tree]" = field(default_factory=list)

class Chain(TypedDict):
    next: "Optional[Chain]"

@dataclass
class Page(Generic[T]):
    entries: List[T]
    total: int

@dataclass
class Limit:
    ge: Optional[int] = None
    le: Optional[int] = None
    min_length: Optional[int] = None
    pattern: Optional[str] = None
`;

const item = object({ name: text, price: { ...number, default: 1.5 }, tags: list(text) }, ["name"]);
const address = object({ street: text, zip: text }, ["street"]);
const color = { enum: ["red", "blue"] };

export const CORPUS: readonly Signature[] = [
  { hint: "str", schema: text },
  { hint: "int", schema: integer },
  { hint: "float", schema: number },
  { hint: "bool", schema: boolean },
  { hint: "None", schema: nothing },
  { hint: "Any", schema: {} },
  { hint: "object", schema: {} },
  { hint: "List[int]", schema: list(integer) },
  { hint: "list[int]", schema: list(integer) },
  { hint: "list", schema: list({}) },
  { hint: "List", schema: list({}) },
  { hint: "List[List[str]]", schema: list(list(text)) },
  { hint: "Sequence[float]", schema: list(number) },
  { hint: "Iterable[str]", schema: list(text) },
  { hint: "Set[int]", schema: unique(integer) },
  { hint: "frozenset[str]", schema: unique(text) },
  { hint: "Tuple[int, ...]", schema: list(integer) },
  { hint: "Tuple[int, str]", schema: pair(integer, text) },
  { hint: "tuple[float, float, bool]", schema: pair(number, number, boolean) },
  { hint: "tuple", schema: list({}) },
  { hint: "Dict[str, int]", schema: record(integer) },
  { hint: "dict[str, list[int]]", schema: record(list(integer)) },
  { hint: "dict", schema: record(true) },
  { hint: "Mapping[str, Any]", schema: record(true) },
  { hint: "Dict[int, str]", schema: { ...record(text), propertyNames: { pattern: "^-?[0-9]+$" } } },
  { hint: "Dict[Color, int]", schema: { ...record(integer), propertyNames: color } },
  { hint: 'Dict[Literal["a", "b"], int]', schema: { ...record(integer), propertyNames: { enum: ["a", "b"] } } },
  { hint: "Optional[str]", schema: any(text, nothing) },
  { hint: "Union[int, str]", schema: any(integer, text) },
  { hint: "Union[int, str, None]", schema: any(integer, text, nothing) },
  { hint: "Union[List[int], Dict[str, int]]", schema: any(list(integer), record(integer)) },
  { hint: "Optional[List[Optional[int]]]", schema: any(list(any(integer, nothing)), nothing) },
  { hint: 'Literal["a", "b"]', schema: { enum: ["a", "b"] } },
  { hint: 'Literal[1, "two", True, None]', schema: { enum: [1, "two", true, null] } },
  { hint: "Literal[Color.RED]", schema: { enum: ["red"] } },
  { hint: "Color", schema: color },
  { hint: "Size", schema: { enum: [1, 2] } },
  { hint: "Odd", schema: { enum: ["POINT", "LINE"] } },
  { hint: "List[Color]", schema: list(color) },
  { hint: "Address", schema: address },
  { hint: "Partial", schema: object({ name: text, age: integer }, ["age"]) },
  { hint: "Point", schema: object({ x: integer, y: { ...integer, default: 0 } }, ["x"]) },
  { hint: "Item", schema: item },
  { hint: "Described", schema: { ...object({ size: integer }), description: "A thing that says what it is." } },
  {
    hint: "Order",
    schema: object({ items: list(item), color, to: { ...any(address, nothing), default: null } }, ["items", "color"]),
  },
  {
    hint: "Tree",
    schema: { $ref: "#/$defs/Tree" },
    definitions: { Tree: object({ value: integer, children: list({ $ref: "#/$defs/Tree" }) }, ["value"]) },
  },
  {
    hint: "Chain",
    schema: { $ref: "#/$defs/Chain" },
    definitions: { Chain: object({ next: any({ $ref: "#/$defs/Chain" }, nothing) }) },
  },
  { hint: "Page[int]", schema: object({ entries: list(integer), total: integer }) },
  { hint: "Page[Item]", schema: object({ entries: list(item), total: integer }) },
  { hint: "Page", schema: object({ entries: list({}), total: integer }) },
  { hint: "Dict[str, Page[str]]", schema: record(object({ entries: list(text), total: integer })) },
  { hint: '"Item"', schema: item },
  { hint: 'List["Item"]', schema: list(item) },
  { hint: "UserId", schema: integer },
  { hint: "Number", schema: any(integer, number) },
  { hint: "Texty", schema: text },
  { hint: "datetime.datetime", schema: { type: "string", format: "date-time" } },
  { hint: "datetime.date", schema: { type: "string", format: "date" } },
  { hint: "Optional[datetime.date]", schema: any({ type: "string", format: "date" }, nothing) },
  { hint: "datetime.timedelta", schema: { type: "number", description: "Seconds." } },
  { hint: "decimal.Decimal", schema: decimal },
  { hint: "uuid.UUID", schema: { type: "string", format: "uuid" } },
  { hint: "pathlib.Path", schema: text },
  {
    hint: "bytes",
    schema: {
      type: "string",
      contentEncoding: "base64",
      pattern: "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    },
  },
  { hint: 'Annotated[int, "How many."]', schema: { ...integer, description: "How many." } },
  { hint: "Annotated[int, Limit(ge=1, le=5)]", schema: { ...integer, minimum: 1, maximum: 5 } },
  { hint: "Annotated[str, Limit(min_length=2)]", schema: { ...text, minLength: 2 } },
  { hint: 'Annotated[str, Limit(pattern="^[a-c]+$")]', schema: { ...text, pattern: "^[a-c]+$" } },
  { hint: "Annotated[List[int], Limit(min_length=1)]", schema: { ...list(integer), minItems: 1 } },
  { hint: 'Annotated[int, {"multipleOf": 3}]', schema: { ...integer, multipleOf: 3 } },
  // How far an alias is unrolled before it refers to itself differs between versions of Python.
  { hint: "Json", schema: undefined },
];
