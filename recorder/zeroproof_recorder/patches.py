"""Replacements that can all be taken back. Each of them is made by the guard."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, Optional

from .calls import Function, Use, Watcher, observed
from .guard import Observer

_MISSING = object()


class PatchBook:
    """Remembers what was replaced, and puts it back in reverse order.

    There is no way to set a bare function: what observes goes through an Observer.
    """

    def __init__(self):
        self._undo: list[Callable[[], None]] = []
        self.use = Use()  # of what this book replaces until the next undo

    def observe(
        self,
        owner: Any,
        name: str,
        observer: Observer,
        before: Optional[Watcher] = None,
        after: Optional[Watcher] = None,
    ) -> bool:
        """Watches the calls of a function or method; False, with a note, where there is none."""

        def make(original: Function) -> Function:
            return observed(original, observer, self.use, before, after)

        return self.stand_in(owner, name, observer, make)

    def stand_in(
        self, owner: Any, name: str, observer: Observer, make: Callable[[Function], Function]
    ) -> bool:
        """Replaces a function by what `make` makes of it, in every module that holds it."""
        found = _find(owner, name)
        if found is _MISSING:
            observer.unobserved(f"{_word(owner)} has no {name}")
            return False
        original = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
        replacement = make(original)
        if isinstance(found, (staticmethod, classmethod)):
            replacement = type(found)(replacement)
        for holder in _holders(owner, name, found):
            self._set(holder, name, replacement)
        return True

    def view(self, owner: Any, name: str, make: Callable[[Any, Use], Any]) -> None:
        """Replaces an object by a view that passes everything on."""
        self._set(owner, name, make(getattr(owner, name), self.use))

    def observe_entry(
        self, table: dict, key: Any, observer: Observer, before: Watcher, after: Watcher
    ) -> None:
        """Watches a function in a dictionary; it keeps its place."""
        original = table[key]
        replacement = observed(original, observer, self.use, before, after)
        table[key] = replacement
        self._undo.append(lambda: _put_back(table, key, replacement, original))

    def look_up_again(self, items: list, method: Any) -> None:
        """Replaces a bound method in a list by what its object has under that name now."""
        now = getattr(method.__self__, method.__name__)
        items[items.index(method)] = now
        self._undo.append(lambda: _swap_back(items, now, method))

    def hook(self, register: Callable[[Function], Any], observer: Observer, hook: Function) -> Any:
        """Registers a hook that only observes; gives PyTorch's handle."""
        handle = register(observer.hook(hook))
        self._undo.append(handle.remove)
        return handle

    def then(self, undo: Callable[[], None]) -> None:
        """Takes over anything that has to be called at the end."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Puts everything back; a step that fails does not keep the others from it."""
        self.use.is_in_use = False  # of what somebody else holds by now
        self.use = Use()
        while self._undo:
            step = self._undo.pop()
            try:
                step()
            except Exception as error:
                print(f"zeroproof-recorder: not put back: {error!r}", file=sys.stderr)

    def _set(self, owner: Any, name: str, value: Any) -> None:
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._undo.append(lambda: _reset(owner, name, value, before))


def _find(owner: Any, name: str) -> Any:
    for place in getattr(owner, "__mro__", (owner,)):
        if name in getattr(place, "__dict__", {}):
            return vars(place)[name]
    return _MISSING


def _holders(owner: Any, name: str, value: Any) -> Iterable[Any]:
    """The owner, and the modules that have imported this function by its name."""
    if not isinstance(owner, types.ModuleType):
        return [owner]
    modules = list(sys.modules.values())
    return [module for module in modules if getattr(module, "__dict__", {}).get(name) is value]


def _word(owner: Any) -> str:
    return "PyTorch" if owner is None else getattr(owner, "__name__", type(owner).__name__)


def _reset(owner: Any, name: str, value: Any, before: Any) -> None:
    if vars(owner).get(name) is not value:  # somebody has put something above it
        return
    if before is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, before)


def _put_back(table: dict, key: Any, value: Any, before: Any) -> None:
    if table.get(key) is value:  # somebody may have removed the hook meanwhile
        table[key] = before


def _swap_back(items: list, value: Any, before: Any) -> None:
    if value in items:
        items[items.index(value)] = before
