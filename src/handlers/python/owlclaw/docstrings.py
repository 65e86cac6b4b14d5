"""Reads docstrings in the styles of Google, NumPy and reStructuredText."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

_GOOGLE = {
    "args": "params",
    "arguments": "params",
    "parameters": "params",
    "params": "params",
    "keyword args": "params",
    "keyword arguments": "params",
    "other parameters": "params",
    "attributes": "params",
    "returns": "returns",
    "return": "returns",
    "yields": "skip",
    "yield": "skip",
    "raises": "skip",
    "raise": "skip",
    "note": "text",
    "notes": "text",
    "example": "skip",
    "examples": "skip",
    "see also": "skip",
    "references": "skip",
    "todo": "skip",
}
_FACT = re.compile(r"^(skill|cost|timeout|title|confirm):\s*(\S.*)$", re.IGNORECASE)
_FIELD = re.compile(r"^:(param|parameter|arg|argument|key|keyword|var|return|returns|raise|raises|type|rtype|yield|yields)\b\s*([^:]*):\s*(.*)$")
_GOOGLE_ITEM = re.compile(r"^(\*{0,2}\w+)\s*(?:\(([^)]*)\))?\s*:\s*(.*)$")
_NUMPY_ITEM = re.compile(r"^(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::\s*(.*))?$")
_UNDERLINE = re.compile(r"^\s*[-=]{3,}\s*$")


@dataclass
class Docstring:
    """A parsed docstring."""

    description: str = ""
    params: Dict[str, str] = field(default_factory=dict)
    returns: str = ""
    #: ``Skill:``, ``Cost:`` and the like, by their name in lower case.
    facts: Dict[str, str] = field(default_factory=dict)


def read_docstring(text: Optional[str]) -> Docstring:
    found = Docstring()
    lines = inspect.cleandoc(text or "").splitlines()
    prose: List[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        fact = _FACT.match(line)
        if fact:
            found.facts[fact.group(1).lower()] = fact.group(2).strip()
            at += 1
            continue
        if _FIELD.match(line):
            at = _read_field(lines, at, found)
            continue
        kind, start = _section(lines, at)
        if kind is None:
            prose.append(line)
            at += 1
            continue
        end = _section_end(lines, start, is_numpy=start == at + 2)
        body = lines[start:end]
        if kind == "params":
            (_numpy_params if start == at + 2 else _google_params)(body, found)
        elif kind == "returns":
            found.returns = _returns(body, is_numpy=start == at + 2)
        elif kind == "text":
            prose.extend(body)
        at = end
    found.description = _joined(prose)
    return found


def _section(lines: List[str], at: int) -> Tuple[Optional[str], int]:
    name = lines[at].strip()
    if at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1]):
        return _GOOGLE.get(name.lower()), at + 2
    if lines[at][:1].isspace() or not name.endswith(":"):
        return None, at
    return _GOOGLE.get(name[:-1].lower()), at + 1


def _section_end(lines: List[str], start: int, is_numpy: bool) -> int:
    for at in range(start, len(lines)):
        line = lines[at]
        if is_numpy:
            if at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1]) and line.strip():
                return at
        elif line.strip() and not line[:1].isspace():
            return at
        if _FACT.match(line) and not line[:1].isspace():
            return at
    return len(lines)


def _google_params(body: List[str], found: Docstring) -> None:
    block = inspect.cleandoc("\n".join(["", *body])).splitlines()
    _items(block, _GOOGLE_ITEM, lambda match: ([match.group(1)], match.group(3)), found)


def _numpy_params(body: List[str], found: Docstring) -> None:
    _items(body, _NUMPY_ITEM, lambda match: (re.split(r"\s*,\s*", match.group(1)), ""), found)


def _items(lines: List[str], pattern: "re.Pattern[str]", read, found: Docstring) -> None:  # type: ignore[no-untyped-def]
    names: List[str] = []
    text: List[str] = []

    def flush() -> None:
        for name in names:
            found.params[name.lstrip("*")] = " ".join(" ".join(text).split())

    for line in lines:
        match = pattern.match(line) if not line[:1].isspace() else None
        if match:
            flush()
            names, first = read(match)
            text = [first]
        else:
            text.append(line.strip())
    flush()


def _returns(body: List[str], is_numpy: bool) -> str:
    block = inspect.cleandoc("\n".join(["", *body]))
    if is_numpy:
        lines = block.splitlines()
        rest = [line for line in lines[1:] if line[:1].isspace()]
        return " ".join(" ".join(rest).split()) if rest else " ".join(block.split())
    return " ".join(re.sub(r"^[\w\[\], .|]+:\s+", "", block).split())


def _read_field(lines: List[str], at: int, found: Docstring) -> int:
    match = _FIELD.match(lines[at])
    assert match is not None
    kind, about, first = match.groups()
    text = [first]
    at += 1
    while at < len(lines) and lines[at][:1].isspace():
        text.append(lines[at].strip())
        at += 1
    said = " ".join(" ".join(text).split())
    if kind in ("param", "parameter", "arg", "argument", "key", "keyword", "var") and about.strip():
        found.params[about.split()[-1].lstrip("*")] = said
    elif kind in ("return", "returns"):
        found.returns = said
    return at


def _joined(lines: List[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
