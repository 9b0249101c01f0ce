"""DeepSpeed's hook-state manager: every method with the state before and after."""

from __future__ import annotations

import functools
import sys
import types

from .patches import PatchBook
from .session import Session

# Made once, when an engine is made or destroyed: no part of a backward.
_WIRING = ("register_grad_acc_post_hook", "unregister_grad_acc_post_hooks")


def manager_policy() -> str:
    """Which version of upstream's bookkeeping this DeepSpeed has, by the name of its change."""
    module = sys.modules["deepspeed.runtime.base_optimizer"]
    manager = getattr(module, "BackwardHookStateManager", None)
    if manager is None:
        optimizer = getattr(module, "ZeROOptimizer", None)
        return "pr7665" if hasattr(optimizer, "enter_backward") else "none"
    if not hasattr(manager, "should_refresh_expected_hook_count"):
        return "pr7780"
    says_whether_complete = manager().reset_for_new_step() is not None
    return "pr8245" if says_whether_complete else "pr7886"


class HookManager:
    """Replaces the methods of the manager's class."""

    def __init__(self, session: Session, engine_of):
        self._session = session
        self._engine_of = engine_of  # of a manager

    def install(self, patches: PatchBook) -> None:
        """Watches every public method, or those of the optimizer before there was a manager."""
        module = sys.modules["deepspeed.runtime.base_optimizer"]
        manager = getattr(module, "BackwardHookStateManager", None)
        if manager is not None:
            for name, method in list(vars(manager).items()):
                is_method = isinstance(method, types.FunctionType) and not name.startswith("__")
                if is_method and name not in _WIRING:
                    patches.set(manager, name, self._watched(method, _state))
            return
        optimizer = module.ZeROOptimizer
        for name in ("run_grad_acc_post_hooks", "enter_backward", "exit_backward"):
            if hasattr(optimizer, name):
                method = self._watched(getattr(optimizer, name), _state_before_manager)
                patches.set(optimizer, name, method)

    def _watched(self, original, state):
        session, method = self._session, original.__name__

        @functools.wraps(original)
        def watched(manager, *args):
            if not session.is_open:
                return original(manager, *args)
            engine = self._engine_of(manager)
            told = {"method": method, "engine": engine, "state": state(manager)}
            if args:
                told["args"] = [arg for arg in args if isinstance(arg, (int, float, str))]
            session.emit("bhs.call", told)
            try:
                result = original(manager, *args)
            except BaseException as error:
                failure = type(error).__name__
                session.emit("bhs.return", {"method": method, "engine": engine, "exc": failure})
                raise
            ended = {"method": method, "engine": engine, "state": state(manager)}
            if isinstance(result, (bool, int)):
                ended["ret"] = result
            session.emit("bhs.return", ended)
            return result

        return watched


def _state(manager) -> tuple:
    """Values in the order of encoder.MANAGER_STATE, which adds the names."""
    return (
        manager.remaining_grad_acc_hooks,
        len(manager._grad_acc_post_hooks),
        manager.backward_active_depth,
        manager.backward_seen_this_step,
        manager.epilogue_ran_this_backward,
        manager.hooks_fired_this_backward,
        manager.max_expected_hooks_seen,
        manager.post_backward_callback_queued,
        manager.post_backward_callback_graph_task_id,
    )


def _state_before_manager(optimizer) -> tuple:
    hooks = len(optimizer._grad_acc_post_hooks)
    return (optimizer._remaining_grad_acc_hooks, hooks, optimizer._backward_active_depth)
