"""Converts type hints to shapes."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import pathlib
import re
import sys
import types
import typing
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from .shapes import ANY, PLAIN, Choice, Constrained, DictOf, Fields, Lazy, ListOf, Misfit, Plain, PydanticShape, Shape
from .shapes import TupleOf, Union, enum_options

_LISTS = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
}
_SETS = {
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
}
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_UNION = (typing.Union, getattr(types, "UnionType", typing.Union))


def _int_key(value: Any, path: str) -> int:
    if not re.match(r"^-?[0-9]+$", value):
        raise Misfit(path, "must have integers as property names")
    return int(value)


_INT_KEY = Plain({"pattern": "^-?[0-9]+$"}, _int_key)
_KEYWORDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
    "description": "description",
    "title": "title",
}


class Inexpressible(Exception):
    """A type that JSON cannot express, with what to write instead."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


class HintReader:
    """Reads the hints of one module."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._named: Dict[Any, Shape] = {}

    def hints_of(self, owner: Any, namespace: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        found = {**self._namespace, **(namespace or {})}
        try:
            return get_hints(owner, found)
        except NameError as error:
            name = getattr(error, "name", None) or str(error)
            raise Inexpressible(f"the type {name!r} is not known here", f"define or import {name}") from None
        except (TypeError, AttributeError, SyntaxError) as error:
            raise Inexpressible(
                f"its type hints cannot be read: {error}",
                "write types that this Python knows; before 3.10, Optional[X] in place of X | None",
            ) from None

    def shape(self, hint: Any, variables: Optional[Mapping[Any, Shape]] = None) -> Shape:
        bound = variables or {}
        if isinstance(hint, str):
            return self._forward(hint)
        if isinstance(hint, typing.ForwardRef):
            return self._forward(hint.__forward_arg__)
        try:
            if hint in PLAIN:
                return PLAIN[hint]
        except TypeError:
            pass
        origin = typing.get_origin(hint)
        if origin is not None and not typing.get_args(hint) and hint is not typing.Tuple[()]:
            return self._bare(origin, bound)
        if origin is not None:
            return self._generic(hint, origin, typing.get_args(hint), bound)
        return self._bare(hint, bound)

    def _bare(self, hint: Any, bound: Mapping[Any, Shape]) -> Shape:
        if isinstance(hint, typing.TypeVar):
            return self._variable(hint, bound)
        if hasattr(hint, "__supertype__"):
            return self.shape(hint.__supertype__, bound)
        if type(hint).__name__ == "TypeAliasType":
            return self._named_lazy(hint, hint.__name__, lambda: self.shape(hint.__value__, bound))
        if hint in _LISTS or hint in _SETS or hint is tuple:
            return ListOf(ANY, _LISTS.get(hint) or _SETS.get(hint) or tuple, is_set=hint in _SETS)
        if hint in _DICTS:
            return DictOf(PLAIN[str], ANY, True)
        if isinstance(hint, type):
            return self._class(hint, (), bound)
        raise _inexpressible(hint)

    def _class(self, kind: type, args: Tuple[Any, ...], bound: Mapping[Any, Shape]) -> Shape:
        if issubclass(kind, enum.Enum):
            if not list(kind):
                raise Inexpressible(f"the enum {kind.__name__} has no members", "give it members")
            return Choice(enum_options(kind))
        if _is_pydantic(kind):
            return PydanticShape(kind)
        if is_typed_dict(kind) or dataclasses.is_dataclass(kind) or is_named_tuple(kind):
            return self._fields(kind, args, bound)
        if issubclass(kind, pathlib.PurePath):
            return Plain({"type": "string"}, lambda value, path: kind(PLAIN[str].load(value, path)))
        if issubclass(kind, datetime.tzinfo) or kind.__module__ == "builtins" or not issubclass(kind, str):
            raise _inexpressible(kind)
        return Plain({"type": "string"}, lambda value, path: kind(PLAIN[str].load(value, path)))

    def _fields(self, kind: Any, args: Tuple[Any, ...], bound: Mapping[Any, Shape]) -> Shape:
        key = (kind, args, tuple(sorted((str(name), id(shape)) for name, shape in bound.items())) if args else ())
        known = self._named.get(key)
        if known is not None:
            return known
        parameters = getattr(kind, "__parameters__", ()) or getattr(kind, "__type_params__", ())
        inner = dict(zip(parameters, (self.shape(arg, bound) for arg in args))) if args else {}
        make = (lambda values: values) if is_typed_dict(kind) else (lambda values: kind(**values))
        fields = Fields(kind.__name__, make)
        self._named[key] = fields
        hints = self.hints_of(kind, vars(sys.modules.get(kind.__module__, types.ModuleType("none"))))
        names, required, defaults = members_of(kind, hints)
        shapes = {name: self.shape(strip_required(hints[name]), inner) for name in names}
        fields.fill(shapes, required, {name: {"default": value} for name, value in defaults.items()})
        fields.description = own_doc(kind)
        return fields

    def _generic(self, hint: Any, origin: Any, args: Tuple[Any, ...], bound: Mapping[Any, Shape]) -> Shape:
        if getattr(hint, "__metadata__", None) is not None:
            return self._annotated(args[0], hint.__metadata__, bound)
        if origin is typing.Literal:
            return literal(args)
        if origin in _UNION:
            return Union([self.shape(arg, bound) for arg in args])
        if origin in _LISTS:
            return ListOf(self.shape(args[0], bound), _LISTS[origin])
        if origin in _SETS:
            return ListOf(self.shape(args[0], bound), _SETS[origin], is_set=True)
        if origin is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                return ListOf(self.shape(args[0], bound), tuple)
            return TupleOf([self.shape(arg, bound) for arg in args if arg != ()])
        if origin in _DICTS:
            return self._dict(args, bound)
        if type(origin).__name__ == "TypeAliasType":
            inner = dict(zip(origin.__type_params__, (self.shape(arg, bound) for arg in args)))
            return self._named_lazy(hint, origin.__name__, lambda: self.shape(origin.__value__, inner))
        if strip_required(hint) is not hint:
            return self.shape(strip_required(hint), bound)
        if isinstance(origin, type):
            return self._class(origin, args, bound)
        raise _inexpressible(hint)

    def _dict(self, args: Tuple[Any, ...], bound: Mapping[Any, Shape]) -> Shape:
        key, value = args
        if key is str:
            return DictOf(PLAIN[str], self.shape(value, bound), True)
        if key is int:
            return DictOf(_INT_KEY, self.shape(value, bound), False)
        shape = self.shape(key, bound)
        if key is Any:
            return DictOf(PLAIN[str], self.shape(value, bound), True)
        is_text = isinstance(shape, Choice) or (isinstance(shape, Plain) and shape.schema(_NONE)["type"] == "string")
        if not is_text:
            raise Inexpressible(
                f"the keys of {render(Dict[key, value])} are no text", "use str, int, an Enum or a Literal as keys"
            )
        return DictOf(shape, self.shape(value, bound), False)

    def _annotated(self, inner: Any, metadata: Tuple[Any, ...], bound: Mapping[Any, Shape]) -> Shape:
        shape = self.shape(inner, bound)
        keywords: Dict[str, Any] = {}
        is_list = isinstance(shape, (ListOf, TupleOf))
        for item in metadata:
            keywords.update(read_metadata(item, is_list))
        return Constrained(shape, keywords) if keywords else shape

    def _variable(self, variable: Any, bound: Mapping[Any, Shape]) -> Shape:
        if variable in bound:
            return bound[variable]
        if variable.__constraints__:
            return Union([self.shape(option, bound) for option in variable.__constraints__])
        return ANY if variable.__bound__ is None else self.shape(variable.__bound__, bound)

    def _forward(self, name: str) -> Shape:
        def resolve() -> Shape:
            try:
                return self.shape(eval(name, dict(self._namespace)))  # noqa: S307 - the operator's own source
            except NameError:
                raise Inexpressible(f"the type {name!r} is not known here", f"define or import {name}") from None

        lazy = self._named_lazy(("forward", name), name, resolve)
        return lazy

    def _named_lazy(self, key: Any, name: str, resolve: Any) -> Shape:
        known = self._named.get(key)
        if known is not None:
            return known
        lazy = Lazy(name, resolve)
        self._named[key] = lazy
        # Once here, so that what is wrong is said when the file is loaded.
        lazy.target()
        return lazy


class _NoSchemas:
    open: List[Shape] = []
    recursive: Dict[int, str] = {}
    definitions: Dict[str, Any] = {}


_NONE: Any = _NoSchemas()


def get_hints(owner: Any, namespace: Mapping[str, Any]) -> Dict[str, Any]:
    return typing.get_type_hints(owner, dict(namespace), include_extras=True)


def is_typed_dict(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def is_named_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def members_of(kind: Any, hints: Dict[str, Any]) -> Tuple[List[str], FrozenSet[str], Dict[str, Any]]:
    """The names of the fields, the required ones, and defaults that JSON can express."""
    from .values import to_json

    if is_typed_dict(kind):
        required = {name for name in hints if is_required(hints[name], name in kind.__required_keys__)}
        return list(hints), frozenset(required), {}
    defaults: Dict[str, Any] = {}
    names: List[str] = []
    optional = set()
    if is_named_tuple(kind):
        names = [name for name in kind._fields if name in hints]
        found = {name: kind._field_defaults[name] for name in names if name in kind._field_defaults}
        optional = set(found)
    else:
        fields = [field for field in dataclasses.fields(kind) if field.init]
        names = [field.name for field in fields]
        found = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
        optional = set(found) | {
            field.name for field in fields if field.default_factory is not dataclasses.MISSING
        }
    for name, value in found.items():
        try:
            defaults[name] = to_json(value)
        except TypeError:
            pass
    return names, frozenset(name for name in names if name not in optional), defaults


def is_required(hint: Any, otherwise: bool) -> bool:
    origin = typing.get_origin(hint)
    name = getattr(origin, "_name", None) or str(origin)
    if name.endswith("NotRequired"):
        return False
    return True if name.endswith("Required") else otherwise


def strip_required(hint: Any) -> Any:
    origin = typing.get_origin(hint)
    name = getattr(origin, "_name", None) or str(origin)
    return typing.get_args(hint)[0] if name.endswith(("Required", "ReadOnly", "Final", "ClassVar")) else hint


def literal(args: Tuple[Any, ...]) -> Shape:
    options: List[Tuple[Any, Any]] = []
    for arg in args:
        if isinstance(arg, enum.Enum):
            options.append((dict((real, wire) for wire, real in enum_options(type(arg)))[arg], arg))
        elif arg is None or isinstance(arg, (str, int, bool)):
            options.append((arg, arg))
        else:
            raise Inexpressible(f"Literal[{arg!r}] is no JSON value", "use text, numbers or booleans")
    return Choice(options)


def _is_pydantic(kind: type) -> bool:
    """A model of pydantic 2, or of pydantic 1."""
    return (hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")) or (
        hasattr(kind, "__fields__") and hasattr(kind, "parse_obj") and hasattr(kind, "schema")
    )


def read_metadata(item: Any, is_list: bool) -> Dict[str, Any]:
    """A text is a description, a dict is JSON Schema; other objects have attributes of annotated-types or pydantic."""
    if isinstance(item, str):
        return {"description": item}
    if isinstance(item, dict):
        return item
    if isinstance(item, slice):
        return {}
    keywords = {}
    for source in [item, *getattr(item, "metadata", [])]:
        for attribute, keyword in _KEYWORDS.items():
            value = getattr(source, attribute, None)
            if isinstance(value, (int, float, str)) and not callable(value):
                keywords[keyword] = value
        for attribute, end in (("min_length", "min"), ("max_length", "max")):
            value = getattr(source, attribute, None)
            if isinstance(value, int):
                keywords[f"{end}{'Items' if is_list else 'Length'}"] = value
    return keywords


def own_doc(kind: Any) -> str:
    doc = kind.__dict__.get("__doc__") or ""
    # Dataclasses and named tuples write one themselves: their signature.
    is_generated = doc.startswith(f"{kind.__name__}(")
    return "" if is_generated else " ".join(doc.split("\n\n")[0].split())


def render(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint).replace("typing.", "")


def _inexpressible(hint: Any) -> Inexpressible:
    return Inexpressible(
        f"the type {render(hint)} cannot be expressed in JSON",
        "use str, int, float, bool, list, dict, Optional, Literal, Enum, TypedDict, a dataclass or a pydantic model",
    )
