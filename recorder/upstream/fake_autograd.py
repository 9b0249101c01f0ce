"""Graph tasks and final callbacks without autograd, as DeepSpeed's hook manager asks for them."""

import contextlib
import types


class FakeAutograd:
    """Stands in for `torch` inside the module of the manager; `has_callbacks`: of graph tasks."""

    def __init__(self, has_callbacks):
        self._open, self._last = [], 0
        engine = types.SimpleNamespace()
        if has_callbacks:
            engine.queue_callback = self._queue
        self._engine = engine
        self.torch = types.SimpleNamespace(
            autograd=types.SimpleNamespace(
                Variable=types.SimpleNamespace(_execution_engine=engine), graph=None
            ),
            _C=types.SimpleNamespace(_current_graph_task_id=lambda: self.task),
        )

    @property
    def task(self):
        """Id of the innermost open task, or -1."""
        return self._open[-1][0] if self._open else -1

    @property
    def depth(self):
        """How many tasks are open."""
        return len(self._open)

    def _queue(self, callback):
        self._open[-1][1].append(callback)

    @contextlib.contextmanager
    def graph_task(self, run_callback):
        """A task; its callbacks run at its end, unless the body raised."""
        self._last += 1
        self._open.append((self._last, []))
        try:
            yield self._last
            for number, callback in enumerate(self._open[-1][1]):
                run_callback(number, callback)
        finally:
            self._open.pop()
