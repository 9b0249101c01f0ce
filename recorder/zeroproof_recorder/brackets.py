"""Brackets around methods: engine.call and engine.return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from .calls import Call, Watcher
from .guard import Observer
from .patches import PatchBook
from .session import Session

Fields = Callable[[Call], Optional[dict[str, Any]]]
BRACKET = ("engine.call", "engine.return")


class CallWatch:
    """Watches methods of classes; each has an observer of its own, named by part and method."""

    def __init__(self, session: Session, patches: PatchBook, part: str):
        self._session = session
        self.patches = patches
        self._part = part

    def bracket(self, owner: Any, name: str, method: str, fields: Fields) -> None:
        """Emits engine.call and engine.return. Methods that this version lacks are left out.

        A call whose fields are None is of something that is not recorded.
        """
        if not hasattr(owner, name):
            return
        emit = self._session.emit

        def begins(call: Call) -> None:
            told = fields(call)
            if told is not None:
                call.token = {"method": method, **told}
                emit("engine.call", call.token)

        def ends(call: Call) -> None:
            if call.token is not None:
                engine = call.token.get("engine")
                emit("engine.return", {"method": method, "engine": engine, "exc": call.failure})

        self.patches.observe(owner, name, self._observer(name, BRACKET), begins, ends)

    def around(
        self,
        owner: Any,
        name: str,
        lost: tuple[str, ...],
        before: Optional[Watcher] = None,
        returned: Optional[Watcher] = None,
    ) -> None:
        """Calls `before`, and `returned` unless the method raised; a missing one is noted."""

        def ends(call: Call) -> None:
            if call.failure is None:
                returned(call)

        after = ends if returned else None
        self.patches.observe(owner, name, self._observer(name, lost), before, after)

    def _observer(self, name: str, lost: tuple[str, ...]) -> Observer:
        name = name.rsplit("__", 1)[-1].strip("_")  # private names carry that of their class
        return self._session.guard.observer(f"{self._part}.{name}", lost)
