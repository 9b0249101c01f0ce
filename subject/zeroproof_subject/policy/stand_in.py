"""Objects that stand where DeepSpeed's methods look for an engine, an optimizer and autograd."""

from __future__ import annotations

import threading
from typing import Any

from zeroproof_subject.policy.server import Host


class Absent:
    """Every attribute of it and every call of it is itself; it is false."""

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> Absent:
        """Whatever it is called with."""
        return self

    def __bool__(self) -> bool:
        return False


ABSENT = Absent()


class StandInEngine:
    """What methods of DeepSpeedEngine read of their engine; all else is ABSENT."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self._support_torch_style_backward = True
        self._running_engine_backward = False
        self._running_engine_backward_count = 0
        self._running_engine_backward_lock = threading.Lock()
        self._manual_backward_expected = True

    def managed_gradient_accumulation(self) -> bool:
        """As is the default."""
        return True

    def gradient_accumulation_steps(self) -> int:
        """No accumulation."""
        return 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return ABSENT


class ExecutionEngine:
    """torch.autograd.Variable._execution_engine, which has queue_callback or has not."""

    def __init__(self, host: Host, queue: Any) -> None:
        self._host = host
        self._queue = queue

    def __getattr__(self, name: str) -> Any:
        if name == "queue_callback" and self._host.has_callback_api():
            return self._queue
        raise AttributeError(name)


class Overlay:
    """A module or namespace in which some names are others."""

    def __init__(self, original: Any, **others: Any) -> None:
        self.__dict__.update(others)
        self.__dict__["_original"] = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_original"], name)


def autograd_of(host: Host, queue: Any, torch: Any) -> Overlay:
    """`torch`, with graph tasks and their callbacks by the host; `queue` takes a callback."""
    variable = Overlay(torch.autograd.Variable, _execution_engine=ExecutionEngine(host, queue))
    return Overlay(
        torch,
        autograd=Overlay(torch.autograd, Variable=variable),
        _C=Overlay(torch._C, _current_graph_task_id=host.current_graph_task),
    )
