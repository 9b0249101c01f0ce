"""Final callbacks of graph tasks: cb.queue, cb.begin, cb.end."""

from __future__ import annotations

import torch

from .patches import PatchBook
from .session import Session


class EngineView:
    """Stands before autograd's engine object, so that ``queue_callback`` can be seen."""

    def __init__(self, engine, session: Session):
        self._engine = engine
        self._session = session
        self._queued = 0

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def queue_callback(self, callback) -> None:
        """Queues the callback, wrapped, on the current graph task."""
        session = self._session
        if not session.is_open:
            self._engine.queue_callback(callback)
            return
        label = f"{self._queued}:{_callback_name(callback)}"

        def observed():
            session.emit("cb.begin", {"label": label})
            try:
                callback()
            finally:
                session.emit("cb.end", {"label": label})

        self._engine.queue_callback(observed)
        self._queued += 1
        session.emit("cb.queue", {"label": label})


def install(session: Session, patches: PatchBook) -> None:
    """Callbacks that C++ queues by itself (DDP's) are not seen."""
    engine = torch.autograd.Variable._execution_engine
    patches.set(torch.autograd.Variable, "_execution_engine", EngineView(engine, session))


def _callback_name(callback) -> str:
    name = getattr(callback, "__qualname__", None) or type(callback).__name__
    return name.replace("<locals>.", "")
