"""Backward calls: gt.begin and gt.end around every graph task that Python starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch

from .calls import Call
from .effect import looks_up
from .graph import GraphSnapshot
from .names import NameBook
from .options import Detail
from .patches import PatchBook
from .session import GraphTaskFrame, Session, graph_task_id

_RUN = "_engine_run_backward"
# What follows the outputs when backward() and grad() call the engine.
_ARGUMENTS = ("grad_tensors", "keep_graph", "create_graph", "inputs", "allow_unreachable")


class GraphTasks:
    """Watches backward() and autograd.grad(), nested ones included."""

    def __init__(
        self,
        session: Session,
        names: NameBook,
        before_outermost: Callable[[], None],
        at_end: Callable[[], None],
    ):
        self._session = session
        self._names = names
        self._before_outermost = before_outermost
        self._at_end = at_end
        self._has_graphs = session.options.detail >= Detail.FULL
        self._observer = session.guard.observer("graph_tasks", ("gt.begin", "gt.end"))
        self._observer.at_off = session.calls.clear
        self._graphs = session.guard.observer("graphs", ("graph", "node.exec"))

    def install(self, patches: PatchBook) -> None:
        """Replaces the one function that all of PyTorch's Python calls go through."""
        for caller in (torch.autograd.backward, torch.autograd.grad):
            if not looks_up(caller, _RUN):
                self._observer.unobserved(f"torch.autograd.{caller.__name__} calls no {_RUN}")
                return
        patches.observe(torch.autograd.graph, _RUN, self._observer, self._begins, self._ends)

    def _begins(self, call: Call) -> None:
        session = self._session
        if not session.is_open or session.is_muted():
            return
        if not session.calls:
            self._before_outermost()
        outputs = call.argument("t_outputs", "outputs", place=0) or ()
        arguments = {**dict(zip(_ARGUMENTS, call.args[1:])), **call.kwargs}
        parent = session.calls[-1] if session.calls else None
        frame = GraphTaskFrame(session.next_call())
        snapshot = self._snapshot(frame.call, outputs, arguments) if self._has_graphs else None
        session.emit("gt.begin", self._begin_fields(frame, parent, outputs, arguments))
        session.calls.append(frame)
        call.token = (frame, snapshot)

    def _ends(self, call: Call) -> None:
        if call.token is None:
            return
        frame, snapshot = call.token
        session = self._session
        if snapshot is not None:
            self._graphs.always(snapshot.release)()
        self._at_end()
        if frame in session.calls:
            session.calls.remove(frame)
        session.emit("gt.end", {"call": frame.call, "exc": call.failure})

    def _snapshot(self, call: int, outputs, arguments) -> GraphSnapshot:
        snapshot = GraphSnapshot(self._session, self._names, call, self._graphs)
        take = self._graphs.guarded(snapshot.take)
        take(outputs, arguments.get("inputs"), arguments.get("accumulate_grad"))
        return snapshot

    def _begin_fields(self, frame, parent, outputs, arguments) -> dict[str, Any]:
        inputs = arguments.get("inputs") or ()
        return {
            "call": frame.call,
            "parent": parent.call if parent else None,
            "parent_gt": graph_task_id() if parent else None,
            "api": "backward" if arguments.get("accumulate_grad") else "grad",
            "keep_graph": bool(arguments.get("keep_graph")),
            "create_graph": bool(arguments.get("create_graph")),
            "n_roots": len(outputs),
            "inputs": [self._input_name(t) for t in inputs] or None,
        }

    def _input_name(self, tensor) -> Optional[str]:
        return self._names.known_param(tensor) if isinstance(tensor, torch.Tensor) else None
