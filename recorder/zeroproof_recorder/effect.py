"""Whether a replaced function is what its callers will call."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


def looks_up(caller: Any, name: str) -> bool:
    """Whether the code of a Python function reads this name when it runs.

    Also through functions of its own module that it reads, so a helper between them counts.
    Does not execute the function.
    """
    return name in names_read(caller)


def names_read(caller: Any) -> set[str]:
    """All names that a function reads, and those that functions of its module read for it."""
    found: set[str] = set()
    waiting = [caller]
    seen: set[int] = set()
    while waiting:
        function = _plain(waiting.pop())
        code = getattr(function, "__code__", None)
        if code is None or id(code) in seen:
            continue
        seen.add(id(code))
        names = _names_of(code)
        found |= names
        scope = function.__globals__
        waiting += [scope[name] for name in names if _is_of(scope.get(name), scope)]
    return found


def _names_of(code: types.CodeType) -> set[str]:
    inner = [_names_of(item) for item in code.co_consts if isinstance(item, types.CodeType)]
    return set(code.co_names).union(*inner)


def _is_of(value: Any, scope: dict[str, Any]) -> bool:
    function = _plain(value)
    return isinstance(function, types.FunctionType) and function.__globals__ is scope


def _plain(value: Any) -> Callable[..., Any]:
    """Below decorators that keep what they decorate."""
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    return value
