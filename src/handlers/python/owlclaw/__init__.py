"""For Python handlers of OwlClaw. All of it is optional.

A public function with type hints and a docstring in a file under ``handlers.paths`` is a tool. The decorator says
what hints cannot; a parameter annotated ``Context`` gets the context of the call.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Optional, TypeVar, Union, overload

from .context import Context

__all__ = ["Context", "handler"]

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = "__owlclaw_handler__"


@overload
def handler(function: F) -> F: ...


@overload
def handler(
    *,
    name: Optional[str] = None,
    title: Optional[str] = None,
    cost: Union[int, float, Dict[str, float], None] = None,
    skill: Optional[str] = None,
    timeout: Optional[float] = None,
    readonly: Optional[bool] = None,
    destructive: Optional[bool] = None,
    idempotent: Optional[bool] = None,
    confirm: Union[bool, str, None] = None,
    hidden: bool = False,
    scope: Optional[str] = None,
    version: Optional[str] = None,
) -> Callable[[F], F]: ...


def handler(function: Any = None, **options: Any) -> Any:
    """Marks a function as a handler and sets its metadata. ``timeout`` is in seconds, ``skill`` is category/name."""
    unknown = set(options) - _KNOWN
    if unknown:
        raise TypeError(f"@handler has no option {', '.join(sorted(unknown))}; it knows {', '.join(sorted(_KNOWN))}")

    def mark(marked: F) -> F:
        if not inspect.isfunction(marked):
            raise TypeError("@handler goes on a function")
        setattr(marked, OPTIONS, options)
        return marked

    return mark if function is None else mark(function)


_KNOWN = {
    "name",
    "title",
    "cost",
    "skill",
    "timeout",
    "readonly",
    "destructive",
    "idempotent",
    "confirm",
    "hidden",
    "scope",
    "version",
}
