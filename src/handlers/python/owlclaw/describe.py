"""Describes a handler file: tools from its functions, their type hints and docstrings."""

from __future__ import annotations

import ast
import collections.abc
import importlib.util
import inspect
import os
import re
import sys
import traceback
import typing
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import OPTIONS
from .context import Context
from .docstrings import Docstring, read_docstring
from .hints import HintReader, Inexpressible, get_hints, render
from .shapes import ANY, DictOf, Misfit, Schemas, Shape, with_extras
from .values import to_json

_GENERATORS = (collections.abc.Generator, collections.abc.AsyncGenerator)
_ITERATORS = (
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
)


@dataclass
class Parameter:
    name: str
    shape: Shape
    kind: Any
    is_required: bool


@dataclass
class Handler:
    """A function as a tool: its description and how to call it."""

    function: Callable[..., Any]
    parameters: List[Parameter]
    context_name: Optional[str]
    description: Dict[str, Any]

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function)

    def arguments(self, value: Dict[str, Any], context: Context) -> Tuple[List[Any], Dict[str, Any]]:
        """Converts the input to the function's arguments. Raises ``Misfit`` for invalid input."""
        args: List[Any] = []
        named: Dict[str, Any] = {}
        known = {parameter.name for parameter in self.parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD}
        for parameter in self.parameters:
            name = parameter.name
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                rest = {key: item for key, item in value.items() if key not in known}
                named.update(parameter.shape.load(rest, ""))
            elif name not in value:
                if parameter.is_required:
                    raise Misfit("", f"must have required property '{name}'")
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(parameter.shape.load(value[name], name))
            elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                args.append(parameter.shape.load(value[name], name))
            else:
                named[name] = parameter.shape.load(value[name], name)
        if self.context_name is not None:
            named[self.context_name] = context
        if args and not all(parameter.kind is inspect.Parameter.POSITIONAL_ONLY for parameter in self.parameters):
            args = self._positional(named, args)
        extra = set(value) - known
        if extra and not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in self.parameters):
            raise Misfit("", f'must NOT have additional properties ("{sorted(extra)[0]}")')
        return args, named

    def _positional(self, named: Dict[str, Any], rest: List[Any]) -> List[Any]:
        """With ``*args`` the parameters before it are positional too."""
        if not any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in self.parameters):
            return rest
        before = []
        for name, parameter in inspect.signature(self.function).parameters.items():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                break
            before.append(named.pop(name) if name in named else parameter.default)
        return before + rest


class LoadedModule:
    """A file in this process, with its handlers by name."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.handlers: Dict[str, Handler] = {}
        self.problems: List[Dict[str, Any]] = []
        self.dependencies: List[str] = []
        self.reads: List[str] = []
        module = self._import()
        self.is_broken = module is None
        if module is not None:
            self._read(module)
            self.dependencies, elsewhere = find_dependencies(file)
            self.reads = [*interpreter_places(), *elsewhere]

    def report(self) -> Dict[str, Any]:
        return {
            "definitions": [],
            "functions": [handler.description for handler in self.handlers.values()],
            "problems": self.problems,
            "dependencies": self.dependencies,
            "reads": self.reads,
            "isBroken": self.is_broken,
        }

    def _import(self) -> Optional[ModuleType]:
        folder = os.path.dirname(self.file)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        stem = re.sub(r"\W", "_", os.path.splitext(os.path.basename(self.file))[0])
        name = f"owlclaw_handlers_{abs(hash(self.file)):x}_{stem}"
        spec = importlib.util.spec_from_file_location(name, self.file)
        if spec is None or spec.loader is None:
            self.problems.append({"file": self.file, "message": "it is no Python file"})
            return None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:  # noqa: BLE001 - even exit() at import is only this file's problem
            del sys.modules[name]
            self.problems.append(problem_of(self.file, error))
            return None
        return module

    def _read(self, module: ModuleType) -> None:
        reader = HintReader(vars(module))
        for name, value in list(vars(module).items()):
            if not inspect.isfunction(value) or value.__module__ != module.__name__:
                continue
            options = getattr(value, OPTIONS, None)
            doc = inspect.getdoc(value)
            if options is None and (name.startswith("_") or not doc):
                continue
            try:
                handler = read_handler(name, value, reader, options or {})
            except Inexpressible as error:
                self.problems.append(
                    {"file": self.file, "line": line_of(value), "message": f"{name}: {error}", "fix": error.fix}
                )
                continue
            except Exception as error:  # noqa: BLE001 - one function is no reason to lose the others
                message = f"{name}: its type hints cannot be read: {type(error).__name__}: {error}"
                self.problems.append({"file": self.file, "line": line_of(value), "message": message})
                continue
            self.handlers[name] = handler


def read_handler(name: str, function: Callable[..., Any], reader: HintReader, options: Dict[str, Any]) -> Handler:
    doc = read_docstring(inspect.getdoc(function))
    if not doc.description:
        raise Inexpressible("it has no docstring, which is all that a model knows about it", "write a docstring")
    hints = reader.hints_of(inspect.unwrap(function))
    schemas = Schemas()
    parameters, context_name, properties, more = read_parameters(function, hints, reader, (doc, schemas))
    schema: Dict[str, Any] = {"type": "object", "properties": properties}
    required = [parameter.name for parameter in parameters if parameter.is_required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = more
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    handler = Handler(function, parameters, context_name, {})
    description: Dict[str, Any] = {
        "name": options.get("name") or name,
        "description": doc.description,
        "inputSchema": schema,
        "call": {"style": "object", "parameters": [], "isAsync": handler.is_async},
        "dates": [],
        "exportName": name,
        "line": line_of(function),
        "isGenerator": inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function),
    }
    output = output_schema(function, hints, reader, doc)
    if output is not None:
        description["outputSchema"] = output
    description.update(facts_of(options, doc))
    handler.description = description
    return handler


def read_parameters(
    function: Callable[..., Any], hints: Dict[str, Any], reader: HintReader, said: Tuple[Docstring, Schemas]
) -> Tuple[List[Parameter], Optional[str], Dict[str, Any], Any]:
    doc, schemas = said
    parameters: List[Parameter] = []
    properties: Dict[str, Any] = {}
    context_name: Optional[str] = None
    more: Any = False
    for name, parameter in inspect.signature(function).parameters.items():
        if is_context(hints.get(name)):
            context_name = name
            continue
        shape = reader.shape(hint_of(name, parameter, hints))
        is_rest = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            more = shape.schema(schemas) or True
            parameters.append(Parameter(name, DictOf(ANY, shape, True), parameter.kind, False))
            continue
        if is_rest:
            from .shapes import ListOf

            shape = ListOf(shape, list)
        extras: Dict[str, Any] = {}
        if doc.params.get(name):
            extras["description"] = doc.params[name]
        if parameter.default is not inspect.Parameter.empty:
            try:
                extras["default"] = to_json(parameter.default)
            except TypeError:
                # A default that JSON cannot show works all the same.
                pass
        properties[name] = with_extras(shape.schema(schemas), extras)
        is_required = parameter.default is inspect.Parameter.empty and not is_rest
        parameters.append(Parameter(name, shape, parameter.kind, is_required))
    return parameters, context_name, properties, more


def hint_of(name: str, parameter: inspect.Parameter, hints: Dict[str, Any]) -> Any:
    if name in hints:
        return hints[name]
    if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
        return Any
    if type(parameter.default) in (bool, int, float, str):
        return type(parameter.default)
    raise Inexpressible(f'the parameter "{name}" has no type hint', f"write its type, such as {name}: str")


def is_context(hint: Any) -> bool:
    if hint is Context:
        return True
    return any(arg is Context for arg in typing.get_args(hint)) and type(None) in typing.get_args(hint)


def output_schema(
    function: Callable[..., Any], hints: Dict[str, Any], reader: HintReader, doc: Docstring
) -> Optional[Dict[str, Any]]:
    if "return" not in hints:
        return None
    hint = result_hint(hints["return"], function)
    if hint in (None, type(None), Any, object) or hint is inspect.Parameter.empty or is_bare_dict(hint):
        return None
    schemas = Schemas()
    schema = reader.shape(hint).schema(schemas)
    if not schema:
        return None
    if doc.returns:
        schema["description"] = doc.returns
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    return schema


def result_hint(hint: Any, function: Callable[..., Any]) -> Any:
    """A generator yields progress and returns the result."""
    origin = typing.get_origin(hint) or hint
    args = typing.get_args(hint)
    is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if origin is collections.abc.Generator:
        return args[2] if len(args) > 2 else inspect.Parameter.empty
    if is_generator and origin in (*_GENERATORS, *_ITERATORS):
        return inspect.Parameter.empty
    return hint


def is_bare_dict(hint: Any) -> bool:
    """A type without an output schema: the handler may return an MCP result."""
    return hint is dict or (typing.get_origin(hint) is dict and typing.get_args(hint)[1] is Any)


def facts_of(options: Dict[str, Any], doc: Docstring) -> Dict[str, Any]:
    """Metadata from the decorator and from lines such as ``Cost: 2`` in the docstring."""
    facts: Dict[str, Any] = {}
    for name in ("title", "version", "scope", "skill"):
        value = options.get(name) or doc.facts.get(name)
        if value:
            facts[name] = value
    cost = options.get("cost")
    if cost is None and "cost" in doc.facts:
        cost = number_of("Cost", doc.facts["cost"])
    if cost is not None:
        facts["cost"] = cost
    timeout = options.get("timeout")
    if timeout is None and "timeout" in doc.facts:
        timeout = number_of("Timeout", doc.facts["timeout"])
    if timeout is not None:
        facts["timeoutMs"] = round(float(timeout) * 1000)
    effect = {
        wire: bool(options[name])
        for name, wire in (("readonly", "readOnly"), ("destructive", "destructive"), ("idempotent", "idempotent"))
        if options.get(name) is not None
    }
    if effect:
        facts["effect"] = effect
    confirm = options.get("confirm") or doc.facts.get("confirm")
    if confirm:
        facts["confirm"] = "operator" if confirm is True else confirm
        if facts["confirm"] not in ("operator", "client"):
            raise Inexpressible(f'confirm is "operator" or "client", not {confirm!r}', 'write confirm="operator"')
    if options.get("hidden"):
        facts["isHidden"] = True
    return facts


def number_of(what: str, text: str) -> float:
    match = re.match(r"^\d+(\.\d+)?", text)
    if match is None:
        raise Inexpressible(f'"{what}: {text}" in its docstring is no number', f"write {what}: 2")
    value = float(match.group(0))
    return int(value) if value.is_integer() else value


def line_of(function: Callable[..., Any]) -> int:
    return inspect.unwrap(function).__code__.co_firstlineno


def problem_of(file: str, error: BaseException) -> Dict[str, Any]:
    problem: Dict[str, Any] = {"file": file, "message": f"{type(error).__name__}: {error}"}
    if isinstance(error, SyntaxError) and error.filename == file:
        problem["message"] = f"SyntaxError: {error.msg}"
        problem["line"] = error.lineno or 1
        if error.offset:
            problem["column"] = error.offset
        return problem
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if frames:
        problem["line"] = frames[-1].lineno
    if isinstance(error, ModuleNotFoundError):
        problem["fix"] = f"install {error.name} for {sys.executable}, or set handlers.python to a virtualenv that has it"
    return problem


def find_dependencies(file: str) -> Tuple[List[str], List[str]]:
    """The files that it imports, directly or indirectly, outside of installed packages."""
    beside: Dict[str, None] = {}
    elsewhere: Dict[str, None] = {}
    folder = os.path.dirname(file)
    waiting = [file]
    while waiting:
        current = waiting.pop()
        for name in imported_names(current):
            module = sys.modules.get(name)
            path = getattr(module, "__file__", None)
            if not path or path == file or path in beside or path in elsewhere or is_installed(path):
                continue
            (beside if path.startswith(folder + os.sep) else elsewhere)[path] = None
            waiting.append(path)
    return list(beside), list(elsewhere)


_STANDARD = tuple(
    os.path.realpath(place) + os.sep
    for place in {os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
)


def is_installed(path: str) -> bool:
    """Of Python itself, of this package, or in a folder of packages."""
    return "-packages" + os.sep in path or os.path.realpath(path).startswith(_STANDARD)


def interpreter_places() -> List[str]:
    """Files that change when another Python or another version of a package is installed."""
    folders = [place for place in sys.path if place.endswith("-packages")]
    return [os.path.realpath(sys.executable), os.path.join(sys.prefix, "pyvenv.cfg"), *folders]


def imported_names(file: str) -> List[str]:
    try:
        with open(file, encoding="utf-8") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return []
    names: List[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
            names.extend(f"{node.module}.{alias.name}" for alias in node.names)
    return names


__all__ = ["Handler", "LoadedModule", "get_hints", "render"]
