"""Final callbacks of graph tasks: cb.queue, cb.begin, cb.end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .calls import Call, Use, observed, with_stand_in
from .compiler import compiled_autograd_is_on
from .patches import PatchBook
from .session import Session

LOST = ("cb.queue", "cb.begin", "cb.end")


class EngineView:
    """Stands before autograd's engine object, whose class is immutable.

    Every attribute but ``queue_callback`` is the engine's own.
    """

    def __init__(self, engine: Any, queue_callback: Callable[..., Any]):
        self._engine = engine
        self.queue_callback = queue_callback

    def __getattr__(self, name):
        return getattr(self._engine, name)


class Callbacks:
    """Numbers the callbacks of a process as they are queued."""

    def __init__(self, session: Session):
        self._session = session
        self._observer = session.guard.observer("callbacks", LOST)
        self._queued = 0

    def view(self, engine: Any, use: Use) -> EngineView:
        """The engine, with its queue watched."""
        queue = with_stand_in(engine.queue_callback, self._observer, use, self._watched)
        queue = observed(queue, self._observer, use, after=self._has_queued)
        return EngineView(engine, queue)

    def _watched(self, callback: Callable[[], Any]) -> Callable[[], Any]:
        emit, label = self._session.emit, self._label(callback)

        def begins(_call: Call) -> None:
            emit("cb.begin", {"label": label})

        def ends(_call: Call) -> None:
            emit("cb.end", {"label": label})

        return observed(callback, self._observer, Use(), begins, ends)

    def _has_queued(self, call: Call) -> None:
        if call.failure is None:
            callback = call.args[0] if call.args else next(iter(call.kwargs.values()), None)
            self._session.emit("cb.queue", {"label": self._label(callback)})
            self._queued += 1

    def _label(self, callback: Any) -> str:
        name = getattr(callback, "__qualname__", None) or type(callback).__name__
        return f"{self._queued}:{name.replace('<locals>.', '')}"


def install(session: Session, patches: PatchBook) -> None:
    """Callbacks that C++ queues by itself (DDP's) are not seen."""
    if compiled_autograd_is_on():  # it knows the engine by its class
        observer = session.guard.observer("callbacks", LOST)
        observer.unobserved("compiled autograd is on")
        return
    patches.view(torch.autograd.Variable, "_execution_engine", Callbacks(session).view)
