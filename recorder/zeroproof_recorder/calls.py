"""Brackets around methods: engine.call and engine.return, bhs.call and bhs.return."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional

from .patches import PatchBook
from .session import Session

Fields = Callable[..., dict[str, Any]]


class CallWatch:
    """Replaces methods of a class by versions that tell when they begin and end."""

    def __init__(self, session: Session, patches: PatchBook):
        self._session = session
        self._patches = patches

    def bracket(self, owner: type, name: str, method: str, fields: Optional[Fields] = None) -> None:
        """Emits engine.call and engine.return. Methods that this version lacks are left out."""
        original = _method_of(owner, name)
        if original is None:
            return
        session = self._session

        @functools.wraps(original)
        def bracketed(*args, **kwargs):
            if not session.is_open:
                return original(*args, **kwargs)
            told = {"method": method, **(fields(*args, **kwargs) if fields else {})}
            session.emit("engine.call", told)
            failure = None
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                failure = type(error).__name__
                raise
            finally:
                ended = {"method": method, "engine": told.get("engine"), "exc": failure}
                session.emit("engine.return", ended)

        self._patches.set(owner, name, _like(owner, name, bracketed))

    def around(
        self,
        owner: type,
        name: str,
        before: Optional[Callable] = None,
        after: Optional[Callable] = None,
    ) -> None:
        """Calls `before(*args)`, the method, then `after(token, result, *args)`.

        `token` is what `before` returned; after an exception `after` is not called.
        """
        original = _method_of(owner, name)
        if original is None:
            return
        session = self._session

        @functools.wraps(original)
        def watched(*args, **kwargs):
            if not session.is_open:
                return original(*args, **kwargs)
            token = before(*args, **kwargs) if before else None
            result = original(*args, **kwargs)
            if after:
                after(token, result, *args, **kwargs)
            return result

        self._patches.set(owner, name, _like(owner, name, watched))


def _method_of(owner: type, name: str):
    for base in getattr(owner, "__mro__", ()):
        if name in vars(base):
            found = vars(base)[name]
            return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    return None


def _like(owner: type, name: str, function):
    for base in owner.__mro__:
        if name in vars(base):
            found = vars(base)[name]
            return staticmethod(function) if isinstance(found, staticmethod) else function
    return function
