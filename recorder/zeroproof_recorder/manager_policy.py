"""Which version of upstream's backward bookkeeping this DeepSpeed has, found by what it does."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any, Optional

# By (a manual backward at a depth above one runs no epilogue, engine.backward takes its mark back
# when it raises); the name is the first release that does so.
_BY_ENGINE = {(False, False): "deepspeed-0.18.7", (True, True): "deepspeed-0.19.6"}


class _ProbeError(Exception):
    """Raised inside the engine's backward to see what that leaves."""


def manager_policy() -> Optional[str]:
    """The policy's name, as docs/reference/policies.md has them; None for an unknown one."""
    module = sys.modules.get("deepspeed.runtime.base_optimizer")
    manager = getattr(module, "BackwardHookStateManager", None)
    if manager is None:
        optimizer = getattr(module, "ZeROOptimizer", None)
        return "deepspeed-0.18.3" if hasattr(optimizer, "enter_backward") else "none"
    if not hasattr(manager, "should_refresh_expected_hook_count"):
        return "deepspeed-0.18.5"
    try:
        if manager().reset_for_new_step() is not None:  # it says whether a backward was incomplete
            return "deepspeed-pr8245"
        engine = sys.modules["deepspeed.runtime.engine"].DeepSpeedEngine
        optimizer = _optimizer_at_depth_two(module)
        return _BY_ENGINE.get((_skips_epilogue(engine, optimizer), _takes_back(engine, optimizer)))
    except Exception:  # made or called in another way: not one that zeroproof knows
        return None


def _optimizer_at_depth_two(module: Any) -> Any:
    class Optimizer(module.ZeROOptimizer):
        def needs_scaler(self):
            return False

        def scale_if_loss(self, value):
            raise _ProbeError

    optimizer = object.__new__(Optimizer)
    optimizer._backward_hook_state = module.BackwardHookStateManager()
    optimizer._backward_hook_state.backward_active_depth = 2
    return optimizer


def _stand_in(optimizer: Any, epilogues: list[bool]) -> types.SimpleNamespace:
    """What the two methods read of an engine; no engine is made or touched."""
    return types.SimpleNamespace(
        optimizer=optimizer,
        _running_engine_backward=False,
        _running_engine_backward_count=0,
        _running_engine_backward_lock=threading.Lock(),
        _manual_backward_expected=True,
        _backward_epilogue=lambda: epilogues.append(True),
        managed_gradient_accumulation=lambda: True,
        gradient_accumulation_steps=lambda: 1,
        eigenvalue_enabled=lambda: False,
    )


def _skips_epilogue(engine: type, optimizer: Any) -> bool:
    epilogues: list[bool] = []
    engine._backward_post_hook(_stand_in(optimizer, epilogues))
    return not epilogues


def _takes_back(engine: type, optimizer: Any) -> bool:
    import torch

    stand_in = _stand_in(optimizer, [])
    try:
        with torch.enable_grad():
            loss = torch.zeros((), device="cpu", requires_grad=True).reshape(1)
            engine.backward(stand_in, loss)
    except _ProbeError:
        return not stand_in._running_engine_backward
    raise TypeError("engine.backward scales no loss")
