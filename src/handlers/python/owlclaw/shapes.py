"""Type hints as JSON Schema, and the conversion of JSON values to them. Both are in one file, so that they agree."""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import enum
import re
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple


class Misfit(Exception):
    """A value that the type does not allow."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


class Schemas:
    """Collects the definitions of types that contain themselves."""

    def __init__(self) -> None:
        self.definitions: Dict[str, Any] = {}
        self.open: List["Shape"] = []
        self.recursive: Dict[int, str] = {}

    def name(self, shape: "Shape", wanted: str) -> str:
        known = self.recursive.get(id(shape))
        if known is not None:
            return known
        base = re.sub(r"\W", "_", wanted) or "Type"
        name, count = base, 1
        while name in self.definitions or name in self.recursive.values():
            count += 1
            name = f"{base}{count}"
        self.recursive[id(shape)] = name
        return name


class Shape:
    """A type. ``schema`` shows it; ``load`` makes a value of it from JSON, or raises ``Misfit``."""

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        raise NotImplementedError

    def load(self, value: Any, path: str) -> Any:
        raise NotImplementedError


class AnyShape(Shape):
    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        return {}

    def load(self, value: Any, path: str) -> Any:
        return value


class Plain(Shape):
    """A JSON type, with a check and a conversion."""

    def __init__(self, schema: Dict[str, Any], load: Callable[[Any, str], Any]) -> None:
        self._schema = schema
        self._load = load

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        return dict(self._schema)

    def load(self, value: Any, path: str) -> Any:
        return self._load(value, path)


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise Misfit(path, "must be string")
    return value


def _integer(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Misfit(path, "must be integer")
    if isinstance(value, float):
        if not value.is_integer():
            raise Misfit(path, "must be integer")
        return int(value)
    return value


def _number(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Misfit(path, "must be number")
    return float(value)


def _boolean(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise Misfit(path, "must be boolean")
    return value


def _null(value: Any, path: str) -> None:
    if value is not None:
        raise Misfit(path, "must be null")


_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"
_BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_TIME = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?$"
_DATE_TIME = re.compile(
    r"^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d(?::?\d\d)?)$", re.ASCII
)


def _date_time(value: Any, path: str) -> datetime.datetime:
    match = _DATE_TIME.match(_text(value, path))
    if match is None:
        raise Misfit(path, 'must match format "date-time", such as 2026-01-31T12:00:00Z')
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    micros = int(((fraction or ".0")[1:7]).ljust(6, "0"))
    try:
        return datetime.datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), micros, _zone(zone)
        )
    except ValueError:
        raise Misfit(path, 'must match format "date-time", such as 2026-01-31T12:00:00Z') from None


def _zone(text: str) -> datetime.timezone:
    if text in "Zz":
        return datetime.timezone.utc
    digits = text[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError("no zone")
    offset = datetime.timedelta(hours=hours, minutes=minutes)
    return datetime.timezone(-offset if text[0] == "-" else offset)


def _date(value: Any, path: str) -> datetime.date:
    text = _text(value, path)
    if not re.match(r"^\d{4}-\d\d-\d\d$", text, re.ASCII):
        raise Misfit(path, 'must match format "date", such as 2026-01-31')
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise Misfit(path, 'must match format "date", such as 2026-01-31') from None


def _time(value: Any, path: str) -> datetime.time:
    text = _text(value, path)
    if not re.match(_TIME, text):
        raise Misfit(path, "must be a time such as 12:30:00")
    main, _, fraction = text.partition(".")
    parsed = datetime.time.fromisoformat(main)
    return parsed.replace(microsecond=int(fraction.ljust(6, "0"))) if fraction else parsed


def _decimal(value: Any, path: str) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Misfit(path, "must be string or number")
    if isinstance(value, str) and not re.match(_DECIMAL, value):
        raise Misfit(path, "must be a decimal number")
    return decimal.Decimal(str(value))


def _uuid(value: Any, path: str) -> uuid.UUID:
    text = _text(value, path)
    if not re.match(r"^(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", text, re.IGNORECASE | re.ASCII):
        raise Misfit(path, 'must match format "uuid"')
    return uuid.UUID(text)


def _bytes(value: Any, path: str) -> bytes:
    text = _text(value, path)
    if not re.match(_BASE64, text):
        raise Misfit(path, "must be base64")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Misfit(path, "must be base64") from None


def _duration(value: Any, path: str) -> datetime.timedelta:
    return datetime.timedelta(seconds=_number(value, path))


ANY = AnyShape()

#: Types without parameters.
PLAIN: Dict[Any, Shape] = {
    str: Plain({"type": "string"}, _text),
    int: Plain({"type": "integer"}, _integer),
    float: Plain({"type": "number"}, _number),
    bool: Plain({"type": "boolean"}, _boolean),
    type(None): Plain({"type": "null"}, _null),
    None: Plain({"type": "null"}, _null),
    datetime.datetime: Plain({"type": "string", "format": "date-time"}, _date_time),
    datetime.date: Plain({"type": "string", "format": "date"}, _date),
    datetime.time: Plain({"type": "string", "pattern": _TIME}, _time),
    datetime.timedelta: Plain({"type": "number", "description": "Seconds."}, _duration),
    decimal.Decimal: Plain({"type": ["string", "number"], "pattern": _DECIMAL}, _decimal),
    uuid.UUID: Plain({"type": "string", "format": "uuid"}, _uuid),
    Path: Plain({"type": "string"}, lambda value, path: Path(_text(value, path))),
    bytes: Plain({"type": "string", "contentEncoding": "base64", "pattern": _BASE64}, _bytes),
    Any: ANY,
    object: ANY,
}


class Choice(Shape):
    """One of several values: ``Literal`` and ``Enum``."""

    def __init__(self, options: Sequence[Tuple[Any, Any]]) -> None:
        self._options = list(options)

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        return {"enum": [wire for wire, _ in self._options]}

    def load(self, value: Any, path: str) -> Any:
        for wire, real in self._options:
            if is_same_json(wire, value):
                return real
        allowed = ", ".join(repr(wire) for wire, _ in self._options)
        raise Misfit(path, f"must be one of {allowed}")


def is_same_json(one: Any, other: Any) -> bool:
    """Equality of JSON Schema: 1 equals 1.0, and true does not equal 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


class Union(Shape):
    def __init__(self, members: Sequence[Shape]) -> None:
        self._members = list(members)

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        return {"anyOf": [member.schema(schemas) for member in self._members]}

    def load(self, value: Any, path: str) -> Any:
        misfits = []
        for member in self._members:
            try:
                return member.load(value, path)
            except Misfit as misfit:
                misfits.append(misfit)
        raise Misfit(path, " or ".join(dict.fromkeys(misfit.message for misfit in misfits)))


class ListOf(Shape):
    def __init__(self, item: Shape, make: Callable[[List[Any]], Any], is_set: bool = False) -> None:
        self._item = item
        self._make = make
        self._is_set = is_set

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        schema: Dict[str, Any] = {"type": "array", "items": self._item.schema(schemas)}
        if self._is_set:
            schema["uniqueItems"] = True
        return schema

    def load(self, value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise Misfit(path, "must be array")
        if self._is_set and any(is_equal(a, b) for i, a in enumerate(value) for b in value[:i]):
            raise Misfit(path, "must NOT have duplicate items")
        return self._make([self._item.load(item, f"{path}[{index}]") for index, item in enumerate(value)])


def is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(is_equal(a, b) for a, b in zip(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal(one[key], other[key]) for key in one)
    return bool(one == other)


class TupleOf(Shape):
    def __init__(self, items: Sequence[Shape]) -> None:
        self._items = list(items)

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        count = len(self._items)
        schema: Dict[str, Any] = {"type": "array", "minItems": count, "maxItems": count}
        if count > 0:
            schema["prefixItems"] = [item.schema(schemas) for item in self._items]
        return schema

    def load(self, value: Any, path: str) -> Any:
        if not isinstance(value, list) or len(value) != len(self._items):
            raise Misfit(path, f"must be an array of {len(self._items)} items")
        return tuple(item.load(part, f"{path}[{index}]") for index, (item, part) in enumerate(zip(self._items, value)))


class DictOf(Shape):
    def __init__(self, key: Shape, value: Shape, is_text_key: bool) -> None:
        self._key = key
        self._value = value
        self._is_text_key = is_text_key

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        inner = self._value.schema(schemas)
        schema: Dict[str, Any] = {"type": "object", "additionalProperties": inner if inner else True}
        if not self._is_text_key:
            schema["propertyNames"] = self._key.schema(schemas)
        return schema

    def load(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise Misfit(path, "must be object")
        return {
            self._key.load(key, path): self._value.load(item, f"{path}.{key}" if path else key)
            for key, item in value.items()
        }


class Fields(Shape):
    """An object with known fields: TypedDict, dataclass, NamedTuple."""

    def __init__(self, name: str, make: Callable[[Dict[str, Any]], Any]) -> None:
        self._name = name
        self._make = make
        self._fields: Dict[str, Shape] = {}
        self._required: FrozenSet[str] = frozenset()
        self._extras: Mapping[str, Dict[str, Any]] = {}
        self.description = ""

    def fill(self, fields: Dict[str, Shape], required: FrozenSet[str], extras: Mapping[str, Dict[str, Any]]) -> None:
        """Set later, since a field may have this very type."""
        self._fields = fields
        self._required = required
        self._extras = extras

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        if self in schemas.open:
            return {"$ref": f"#/$defs/{schemas.name(self, self._name)}"}
        schemas.open.append(self)
        properties = {
            name: with_extras(shape.schema(schemas), self._extras.get(name, {})) for name, shape in self._fields.items()
        }
        schemas.open.pop()
        body: Dict[str, Any] = {"type": "object", "properties": properties}
        required = [name for name in self._fields if name in self._required]
        if required:
            body["required"] = required
        body["additionalProperties"] = False
        if self.description:
            body["description"] = self.description
        if id(self) not in schemas.recursive:
            return body
        schemas.definitions[schemas.recursive[id(self)]] = body
        return {"$ref": f"#/$defs/{schemas.recursive[id(self)]}"}

    def load(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise Misfit(path, "must be object")
        inside = f"{path}." if path else ""
        for name in value:
            if name not in self._fields:
                raise Misfit(path, f'must NOT have additional properties ("{name}")')
        for name in self._required:
            if name not in value:
                raise Misfit(path, f"must have required property '{name}'")
        loaded = {name: self._fields[name].load(item, f"{inside}{name}") for name, item in value.items()}
        return self._make(loaded)


def with_extras(schema: Dict[str, Any], extras: Dict[str, Any]) -> Dict[str, Any]:
    """Metadata of the field takes precedence over metadata of its type."""
    return {**schema, **extras} if extras else schema


class Lazy(Shape):
    """A name that is resolved when it is used, since the type may contain itself."""

    def __init__(self, name: str, resolve: Callable[[], Shape]) -> None:
        self._name = name
        self._resolve = resolve
        self._shape: Optional[Shape] = None

    def target(self) -> Shape:
        if self._shape is None:
            self._shape = self._resolve()
        return self._shape

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        if self in schemas.open:
            return {"$ref": f"#/$defs/{schemas.name(self, self._name)}"}
        schemas.open.append(self)
        body = self.target().schema(schemas)
        schemas.open.pop()
        if id(self) not in schemas.recursive:
            return body
        schemas.definitions[schemas.recursive[id(self)]] = body
        return {"$ref": f"#/$defs/{schemas.recursive[id(self)]}"}

    def load(self, value: Any, path: str) -> Any:
        return self.target().load(value, path)


class Constrained(Shape):
    """``Annotated``: a type with metadata."""

    def __init__(self, inner: Shape, keywords: Dict[str, Any]) -> None:
        self._inner = inner
        self._keywords = keywords

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        return with_extras(self._inner.schema(schemas), self._keywords)

    def load(self, value: Any, path: str) -> Any:
        for keyword, limit in self._keywords.items():
            check = _CHECKS.get(keyword)
            if check is not None and not check(value, limit):
                raise Misfit(path, f"must satisfy {keyword} {limit}")
        return self._inner.load(value, path)


def _on_numbers(check: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: isinstance(value, bool) or not isinstance(value, (int, float)) or check(value, limit)


def _on_sized(kind: type, check: Callable[[int, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: not isinstance(value, kind) or check(len(value), limit)


_CHECKS: Dict[str, Callable[[Any, Any], bool]] = {
    "minimum": _on_numbers(lambda value, limit: value >= limit),
    "maximum": _on_numbers(lambda value, limit: value <= limit),
    "exclusiveMinimum": _on_numbers(lambda value, limit: value > limit),
    "exclusiveMaximum": _on_numbers(lambda value, limit: value < limit),
    "multipleOf": _on_numbers(lambda value, limit: abs(value / limit - round(value / limit)) < 1e-9),
    "minLength": _on_sized(str, lambda length, limit: length >= limit),
    "maxLength": _on_sized(str, lambda length, limit: length <= limit),
    "minItems": _on_sized(list, lambda length, limit: length >= limit),
    "maxItems": _on_sized(list, lambda length, limit: length <= limit),
    "pattern": lambda value, limit: not isinstance(value, str) or re.search(limit, value) is not None,
}


class PydanticShape(Shape):
    """A pydantic model checks and converts by its own rules."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def schema(self, schemas: Schemas) -> Dict[str, Any]:
        describe = getattr(self._model, "model_json_schema", None) or self._model.schema
        schema: Dict[str, Any] = dict(describe(ref_template="#/$defs/{model}"))
        schemas.definitions.update(schema.pop("$defs", {}))
        # pydantic 1 has the older name.
        schemas.definitions.update(schema.pop("definitions", {}))
        return schema

    def load(self, value: Any, path: str) -> Any:
        try:
            return (getattr(self._model, "model_validate", None) or self._model.parse_obj)(value)
        except ValueError as error:
            details = getattr(error, "errors", lambda: [])()
            if not details:
                raise Misfit(path, str(error)) from None
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in details[0]["loc"])
            raise Misfit(f"{path}{where}".lstrip("."), details[0]["msg"]) from None


def enum_options(kind: "type[enum.Enum]") -> List[Tuple[Any, Any]]:
    """By value if all values are JSON values, else by name."""
    members = list(kind)
    if all(isinstance(member.value, (str, int, float, bool)) for member in members):
        return [(member.value, member) for member in members]
    return [(member.name, member) for member in members]
