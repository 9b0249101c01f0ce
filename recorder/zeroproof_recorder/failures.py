"""Exceptions that the job did not catch: their event, and their traceback without us."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Callable, Optional

from .patches import PatchBook
from .session import Session

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Failures:
    """Emits ``exc``, once an exception: with ``uncaught`` where it ends the job.

    The hooks of sys and threading see what ends a job that began its recording without a ``with``
    block, or ends a thread, after which the job goes on. What they show stays as it was.
    """

    def __init__(self, session: Session):
        self._session = session
        self._last: Optional[BaseException] = None

    def install(self, patches: PatchBook) -> None:
        """Stands before both hooks."""
        observer = self._session.guard.observer("exception", ("exc",))
        seen = observer.guarded(lambda _kind, error, _traceback: self.note(error))
        _stand_before(sys, "excepthook", seen, patches)
        ended = observer.guarded(lambda args: self.note(args.exc_value, ends_job=False))
        _stand_before(threading, "excepthook", ended, patches)

    def note(self, error: Optional[BaseException], ends_job: bool = True) -> None:
        """The event, unless the exception has one already or is a successful exit.

        It is taken between recorded steps too: it is how the job ended.
        """
        if error is None:
            return
        hide_frames(error)
        if error is self._last:
            return
        self._last = error
        fields = described(error)
        if fields is None:
            return
        session = self._session
        was_open, session.is_open = session.is_open, True
        try:
            session.emit("exc", {**fields, "uncaught": True} if ends_job else fields)
        finally:
            session.is_open = was_open


def described(error: BaseException) -> Optional[dict[str, Any]]:
    """Type and message; None for an exit with code 0."""
    if not isinstance(error, SystemExit):
        message = (str(error).splitlines() or [""])[0][:400]
        return {"type": type(error).__name__, "message": message}
    if error.code in (None, 0):
        return None
    return {"type": "SystemExit", "message": str(error.code)[:400]}


def hide_frames(error: BaseException) -> None:
    """Takes the frames of this package out of the tracebacks that Python will show.

    The first frame of a traceback stays: it is where the exception was caught.
    """
    for one in _chain(error):
        node = one.__traceback__
        while node is not None:
            after = node.tb_next
            while after is not None and is_ours(after):
                after = after.tb_next
            node.tb_next = after
            node = after


def is_ours(node: TracebackType) -> bool:
    """Whether a frame of a traceback belongs to this package."""
    return os.path.abspath(node.tb_frame.f_code.co_filename).startswith(_OURS)


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]


def _stand_before(owner: Any, name: str, seen: Callable, patches: PatchBook) -> None:
    shown = getattr(owner, name)

    def hook(*args):
        seen(*args)
        shown(*args)

    setattr(owner, name, hook)

    def put_back():
        if getattr(owner, name) is hook:  # somebody may have put another hook before it
            setattr(owner, name, shown)

    patches.then(put_back)
