"""Optimizer steps: the events, and the count by which a recording is limited to some of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Optional

import torch
from torch.optim import optimizer as optimizer_hooks

from .patches import PatchBook
from .session import Session


class StepCounter:
    """Counts the steps of the optimizer that steps first; an engine's steps count instead.

    DeepSpeed steps its inner optimizer once a group or sub-group: while an engine steps, the
    optimizers inside it are not listened to.
    """

    def __init__(self, on_step: Callable[[int], None]):
        self.steps = 0  # complete ones
        self._on_step = on_step
        self._leader: Optional[int] = None
        self.engine_depth = 0

    def install(self, patches: PatchBook) -> None:
        """Registers PyTorch's global hook behind every step of every optimizer."""
        patches.handle(optimizer_hooks.register_optimizer_step_post_hook(self._after_step))

    def _after_step(self, optimizer, _args, _kwargs) -> None:
        if self.engine_depth:
            return
        if self._leader is None:
            self._leader = id(optimizer)
        if self._leader == id(optimizer):
            self.count()

    def count(self) -> None:
        """One more step is complete."""
        self.steps += 1
        self._on_step(self.steps)


class OptimizerEvents:
    """Emits opt.step and opt.zero_grad of plain optimizers."""

    def __init__(self, session: Session, counter: StepCounter):
        self._session = session
        self._counter = counter

    def install(self, patches: PatchBook) -> None:
        """Registers the global hook before a step, and replaces Optimizer.zero_grad."""
        patches.handle(optimizer_hooks.register_optimizer_step_pre_hook(self._before_step))
        original = torch.optim.Optimizer.zero_grad

        @functools.wraps(original)
        def zero_grad(optimizer, *args, **kwargs):
            if not self._counter.engine_depth:
                self._session.emit("opt.zero_grad")
            return original(optimizer, *args, **kwargs)

        patches.set(torch.optim.Optimizer, "zero_grad", zero_grad)

    def _before_step(self, optimizer, _args, _kwargs) -> None:
        if not self._counter.engine_depth:
            rates = [float(group.get("lr", 0.0)) for group in optimizer.param_groups]
            self._session.emit("opt.step", {"engine": 0, "lr": rates})
