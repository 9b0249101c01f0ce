"""The hook-state manager of the installed DeepSpeed, driven by its own code.

The gradient hook is the one that stages 1 and 2 register. Prologue, epilogue and post hook are
those of DeepSpeedEngine. Their calls of other objects have no effect. No engine is made.
"""

from __future__ import annotations

import importlib
import os
import types
from collections.abc import Callable
from typing import Any

from zeroproof_subject.policy.server import COUNTERS, METHODS, Host
from zeroproof_subject.policy.stand_in import StandInEngine, autograd_of

MANAGER = "BackwardHookStateManager"


class ProbeError(Exception):
    """Raised inside engine.backward to see what that leaves."""


def counters_of(manager: Any) -> dict[str, Any]:
    """Before 0.18.5 the optimizer has them, with a leading underscore."""
    values = {}
    for name in COUNTERS:
        value = getattr(manager, name, getattr(manager, f"_{name}", None))
        if value is not None:
            values[name] = value
    values["len(_grad_acc_post_hooks)"] = len(manager._grad_acc_post_hooks)
    return values


def watched(cls: type, methods: tuple[str, ...], notes: list[dict[str, Any]]) -> type:
    """A subclass that notes every call of these methods, with the counters before and after."""

    def watching(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *arguments: Any) -> Any:
            call = {"call": name, "counters": counters_of(self)}
            notes.append({**call, "argument": arguments[0]} if arguments else call)
            try:
                returned = original(self, *arguments)
            except BaseException:
                notes.append({"return": name, "counters": counters_of(self), "raised": True})
                raise
            back = {"return": name, "counters": counters_of(self)}
            notes.append({**back, "returned": returned} if isinstance(returned, bool) else back)
            return returned

        return method

    members = {name: watching(name, getattr(cls, name)) for name in methods if hasattr(cls, name)}
    return type(cls.__name__, (cls,), members)


class InstalledPolicy:
    """A policy of zeroproof_subject.policy.server."""

    package = "deepspeed"

    def __init__(self, host: Host) -> None:
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
        torch = importlib.import_module("torch")
        version = importlib.import_module("deepspeed").__version__
        base = importlib.import_module("deepspeed.runtime.base_optimizer")
        self._host = host
        self._engine_class = importlib.import_module("deepspeed.runtime.engine").DeepSpeedEngine
        self._callbacks = types.SimpleNamespace(pending={})  # by graph task
        base.torch = autograd_of(host, self._queue, torch)
        self._optimizer = self._make_optimizer(base)
        self._engine = StandInEngine(self._optimizer)
        self._manager = getattr(self._optimizer, "_backward_hook_state", self._optimizer)
        self._optimizer.register_grad_acc_post_hook(host.run_post_hook)
        self._gradient_hook = self._make_gradient_hook()
        self.name = "installed-deepspeed-" + version.replace("+", ".")
        self.versions = {"deepspeed": version, "torch": torch.__version__}
        self.running_mark = self._running_mark(torch)
        self.prologue_rule = prologue_rule(torch)
        self.roots = {
            "optimizer": self._optimizer,
            "engine": self._engine,
            "callbacks": self._callbacks,
        }
        if self._manager is not self._optimizer:
            self.roots["manager"] = self._manager

    def _make_optimizer(self, base: Any) -> Any:
        notes = self._host.notes
        parent = base.ZeROOptimizer
        if hasattr(base, MANAGER):
            setattr(base, MANAGER, watched(getattr(base, MANAGER), METHODS, notes))
        else:
            parent = watched(parent, ("enter_backward", "exit_backward"), notes)

        class Optimizer(parent):
            """Stage 1 or 2 without gradients."""

            def needs_scaler(self) -> bool:
                return False

            def process_gradients(self, *_: Any) -> None:
                pass

            def backward_prologue(self) -> None:
                pass

            def backward_epilogue(self, **_: Any) -> None:
                pass

        optimizer = Optimizer()
        optimizer.bit16_groups = [[types.SimpleNamespace(requires_grad=True)]]
        optimizer._grad_acc_hooks = []
        return optimizer

    def _make_gradient_hook(self) -> Callable[..., None]:
        stage = importlib.import_module("deepspeed.runtime.zero.stage_1_and_2")
        hooks: list[Callable[..., None]] = []
        stage.register_grad_hook = lambda _, hook: hooks.append(hook)
        stage.count_used_parameters_in_backward = lambda _: self._host.count_expected_hooks()
        stage.DeepSpeedZeroOptimizer.create_gradient_handling_hooks(self._optimizer)
        return hooks[0]

    def _queue(self, callback: Callable[[], None]) -> None:
        task = self._host.current_graph_task()
        self._callbacks.pending.setdefault(task, []).append(callback)
        self._host.queue_callback()

    def _running_mark(self, torch: Any) -> str:
        """How engine.backward marks that it runs: asked of two calls, one inside the other."""
        marked: list[bool] = []

        def call() -> None:
            with torch.enable_grad():
                loss = torch.zeros((), requires_grad=True).reshape(1)
                self._engine_class.backward(engine, loss)

        def raise_inside(_: Any) -> Any:
            if not marked:
                marked.append(False)
                try:
                    call()
                except ProbeError:
                    marked[0] = bool(engine._running_engine_backward)
            raise ProbeError

        engine = StandInEngine(self._optimizer)
        self._optimizer.scale_if_loss = raise_inside
        try:
            call()
        except ProbeError:
            pass
        finally:
            del self._optimizer.scale_if_loss
        if engine._running_engine_backward:
            return "left_by_exception"
        return "counted" if marked[0] else "restored"

    def counters(self) -> dict[str, Any]:
        """By the manager's own names."""
        return counters_of(self._manager)

    def skips_manual_epilogue(self) -> bool:
        """Asked of the engine's post hook."""
        epilogues: list[bool] = []
        engine = StandInEngine(self._optimizer)
        engine._backward_epilogue = lambda: epilogues.append(True)
        self._engine_class._backward_post_hook(engine)
        return not epilogues

    def on_forward_begin(self) -> None:
        """The notice of engine.forward to the optimizer; releases before 0.18.5 send none."""
        if hasattr(self._optimizer, "clear_backward_seen_flag"):
            self._optimizer.clear_backward_seen_flag()

    def on_graph_task_end(self, task: int, raised: bool) -> None:
        """An exception drops the callbacks of its task."""
        self._callbacks.pending.pop(task, None)

    def on_prologue(self) -> None:
        """DeepSpeedEngine's."""
        self._engine_class._backward_prologue(self._engine)

    def after_gradient(self, refresh_count: bool) -> None:
        """The whole gradient hook: the host makes no call between before and after."""
        self._gradient_hook()

    def on_final_callback(self) -> None:
        """The next one that was queued on the current task."""
        callbacks = self._callbacks.pending[self._host.current_graph_task()]
        callbacks.pop(0)()

    def on_epilogue(self) -> None:
        """DeepSpeedEngine's."""
        self._engine_class._backward_epilogue(self._engine)

    def set_epilogue_ran(self, ran: bool) -> None:
        """Written by the optimizer's epilogue, where there is such a flag."""
        if hasattr(self._optimizer, "_epilogue_ran_this_backward"):
            self._optimizer._epilogue_ran_this_backward = ran


def prologue_rule(torch: Any) -> str:
    """Asked of the output hooks that engine.forward registers: two backwards over one graph."""
    utils = importlib.import_module("deepspeed.runtime.utils")
    prologues: list[bool] = []
    with torch.enable_grad():
        output = torch.zeros(1, requires_grad=True) * 2
        utils.register_output_backward_hooks(
            output,
            preprocess_once_fn=lambda: prologues.append(True),
            preprocess_per_tensor_fn=lambda grad: grad,
        )
        output.sum().backward(retain_graph=True)
        output.sum().backward()
    return "once_per_forward" if len(prologues) == 1 else "once_per_graph_task"


def make(host: Host) -> InstalledPolicy:
    """The policy of the DeepSpeed that Python finds."""
    return InstalledPolicy(host)
