"""DeepSpeed's hook-state manager: every method with the state before and after."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from .calls import Call
from .patches import PatchBook
from .session import Session

# Made once, when an engine is made or destroyed: no part of a backward.
_WIRING = ("register_grad_acc_post_hook", "unregister_grad_acc_post_hooks")
_BEFORE_MANAGER = ("run_grad_acc_post_hooks", "enter_backward", "exit_backward")
_LOST = ("bhs.call", "bhs.return")
# Attributes in the order of encoder.MANAGER_STATE, which adds the names.
_ATTRIBUTES = (
    "remaining_grad_acc_hooks",
    "_grad_acc_post_hooks",
    "backward_active_depth",
    "backward_seen_this_step",
    "epilogue_ran_this_backward",
    "hooks_fired_this_backward",
    "max_expected_hooks_seen",
    "post_backward_callback_queued",
    "post_backward_callback_graph_task_id",
)
_ATTRIBUTES_BEFORE_MANAGER = (
    "_remaining_grad_acc_hooks",
    "_grad_acc_post_hooks",
    "_backward_active_depth",
)

State = Callable[[Any], tuple]


class HookManager:
    """Replaces the methods of the manager's class."""

    def __init__(self, session: Session, engine_of: Callable[[Any], int]):
        self._session = session
        self._engine_of = engine_of  # of a manager

    def install(self, patches: PatchBook) -> None:
        """Watches every public method, or those of the optimizer before there was a manager."""
        module = _module()
        manager = getattr(module, "BackwardHookStateManager", None)
        if manager is not None:
            for name, method in list(vars(manager).items()):
                is_method = isinstance(method, types.FunctionType) and not name.startswith("__")
                if is_method and name not in _WIRING:
                    self._watch(patches, manager, name, _ATTRIBUTES)
            return
        optimizer = getattr(module, "ZeROOptimizer", None)
        for name in _BEFORE_MANAGER:
            if hasattr(optimizer, name):
                self._watch(patches, optimizer, name, _ATTRIBUTES_BEFORE_MANAGER)

    def _watch(self, patches: PatchBook, owner: type, method: str, attributes) -> None:
        emit, engine_of = self._session.emit, self._engine_of

        def begins(call: Call) -> None:
            manager = call.subject
            fields = {
                "method": method,
                "engine": engine_of(manager),
                "state": _state(manager, attributes),
            }
            if len(call.args) > 1:
                fields["args"] = [a for a in call.args[1:] if isinstance(a, (int, float, str))]
            emit("bhs.call", fields)

        def ends(call: Call) -> None:
            manager = call.subject
            fields = {"method": method, "engine": engine_of(manager)}
            if call.failure:
                fields["exc"] = call.failure
            else:
                fields["state"] = _state(manager, attributes)
            if isinstance(call.result, (bool, int)):
                fields["ret"] = call.result
            emit("bhs.return", fields)

        observer = self._session.guard.observer(f"hook_manager.{method.strip('_')}", _LOST)
        patches.observe(owner, method, observer, begins, ends)


def _module() -> Any:
    return sys.modules.get("deepspeed.runtime.base_optimizer")


def _state(manager, attributes: tuple[str, ...]) -> tuple:
    values = [getattr(manager, name) for name in attributes]
    values[1] = len(values[1])
    return tuple(values)
