"""Replacements that can all be taken back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_MISSING = object()


class PatchBook:
    """Remembers what was replaced, and puts it back in reverse order."""

    def __init__(self):
        self._undo: list[Callable[[], None]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Sets an attribute of a class, module or object."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        if before is _MISSING:
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, before))

    def put(self, table: dict, key: Any, value: Any) -> None:
        """Replaces an entry of a dictionary, which keeps its place."""
        before = table[key]
        table[key] = value
        self._undo.append(lambda: _put_back(table, key, value, before))

    def swap(self, items: list, before: Any, value: Any) -> None:
        """Replaces an item of a list, which keeps its place."""
        items[items.index(before)] = value
        self._undo.append(lambda: _swap_back(items, value, before))

    def handle(self, handle: Any) -> None:
        """Takes over something with a ``remove`` method."""
        self._undo.append(handle.remove)

    def then(self, undo: Callable[[], None]) -> None:
        """Takes over anything that has to be called at the end."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Puts everything back; a step that fails does not keep the others from it."""
        while self._undo:
            step = self._undo.pop()
            try:
                step()
            except Exception as error:
                print(f"zeroproof-recorder: not put back: {error!r}", file=sys.stderr)


def _put_back(table: dict, key: Any, value: Any, before: Any) -> None:
    if table.get(key) is value:  # somebody may have removed the hook meanwhile
        table[key] = before


def _swap_back(items: list, value: Any, before: Any) -> None:
    if value in items:
        items[items.index(value)] = before
