"""Converts a handler's result to JSON."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import uuid
from typing import Any

from .shapes import enum_options


def to_json(value: Any) -> Any:
    """The value as JSON. Raises ``TypeError`` for a value that JSON cannot express."""
    if value is None or isinstance(value, (bool, str)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, enum.Enum):
        return next(wire for wire, real in enum_options(type(value)) if real is value)
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            raise TypeError(f"{value} is no JSON number; return None or a text")
        return value
    if isinstance(value, dict):
        return {_key(key): to_json(item) for key, item in value.items()}
    return _object(value)


def _object(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "__fields__") and hasattr(value, "json") and callable(value.json):
        # pydantic 1 knows how to write its own types only as text.
        return json.loads(value.json())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: to_json(item) for name, item in zip(value._fields, value)}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((to_json(item) for item in value), key=repr)
    if isinstance(value, datetime.datetime):
        # A time without a zone is the machine's.
        return (value if value.tzinfo else value.astimezone()).isoformat().replace("+00:00", "Z")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    raise TypeError(f"a {type(value).__name__} is no JSON value; return text, numbers, lists, dicts or a dataclass")


def _key(key: Any) -> str:
    plain = to_json(key)
    if isinstance(plain, bool) or plain is None or isinstance(plain, (list, dict)):
        raise TypeError(f"{key!r} cannot be the name of a field; use text")
    return plain if isinstance(plain, str) else str(plain)
