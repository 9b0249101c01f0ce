"""Backward calls: gt.begin and gt.end around every graph task that Python starts."""

from __future__ import annotations

import torch

from .graph import GraphSnapshot
from .names import NameBook
from .options import Detail
from .patches import PatchBook
from .session import GraphTaskFrame, Session, graph_task_id

_ARGUMENTS = ("grad_tensors", "keep_graph", "create_graph", "inputs", "allow_unreachable")


class GraphTasks:
    """Watches backward() and autograd.grad(), nested ones included."""

    def __init__(self, session: Session, names: NameBook, before_outermost, at_end):
        self._session = session
        self._names = names
        self._before_outermost = before_outermost
        self._at_end = at_end
        self._has_graphs = session.options.detail >= Detail.FULL

    def install(self, patches: PatchBook) -> None:
        """Replaces the one function that all of PyTorch's Python calls go through."""
        original = torch.autograd.graph._engine_run_backward

        def run_backward(t_outputs, *args, **kwargs):
            if not self._session.is_open:
                return original(t_outputs, *args, **kwargs)
            return self._run(original, t_outputs, args, kwargs)

        patches.set(torch.autograd, "_engine_run_backward", run_backward)
        patches.set(torch.autograd.graph, "_engine_run_backward", run_backward)

    def _run(self, original, outputs, args, kwargs):
        session = self._session
        if not session.calls:
            self._before_outermost()
        arguments = {**dict(zip(_ARGUMENTS, args)), **kwargs}
        parent = session.calls[-1] if session.calls else None
        frame = GraphTaskFrame(session.next_call())
        snapshot = self._snapshot(frame.call, outputs, arguments)
        session.emit("gt.begin", self._begin_fields(frame, parent, outputs, arguments))
        session.calls.append(frame)
        failure = None
        try:
            return original(outputs, *args, **kwargs)
        except BaseException as error:
            failure = type(error).__name__
            raise
        finally:
            self._end(frame, failure)
            if snapshot:
                snapshot.release()

    def _end(self, frame: GraphTaskFrame, failure) -> None:
        session = self._session
        self._at_end()
        if frame in session.calls:
            session.calls.remove(frame)
        session.emit("gt.end", {"call": frame.call, "exc": failure})

    def _snapshot(self, call: int, outputs, arguments):
        if not self._has_graphs:
            return None
        try:
            snapshot = GraphSnapshot(self._session, self._names, call)
            snapshot.take(outputs, arguments.get("inputs"), arguments.get("accumulate_grad"))
            return snapshot
        except Exception as error:
            self._session.note(f"graph of call {call} could not be read: {error!r}")
            return None

    def _begin_fields(self, frame, parent, outputs, arguments):
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

    def _input_name(self, tensor):
        return self._names.known_param(tensor) if isinstance(tensor, torch.Tensor) else None
