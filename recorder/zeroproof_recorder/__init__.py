"""Records the order of hooks, graph tasks and collectives of a training job.

One line around the part that fails, or none at all (``python -m zeroproof_recorder run``)::

    with zeroproof_recorder.record(model, engine=engine, out="trace", steps=range(10, 12)):
        train()

``zeroproof replay trace`` then says what happened, on which rank, and which rule it broke.
"""

from typing import Any

from .errors import RecorderError
from .options import Detail
from .version import VERSION as __version__

__all__ = ["Detail", "RecorderError", "__version__", "mark", "record"]


def __getattr__(name: str) -> Any:
    """What needs PyTorch is imported when it is asked for."""
    if name in ("mark", "record"):
        from . import recording

        return getattr(recording, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
