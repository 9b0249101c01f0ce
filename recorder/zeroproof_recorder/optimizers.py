"""Optimizer steps: the events, and the count by which a recording is limited to some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

import torch
from torch.optim import optimizer as optimizer_hooks

from .calls import Call
from .patches import PatchBook
from .session import Session


class StepCounter:
    """Counts the steps of the optimizer that steps first; an engine's steps count instead.

    DeepSpeed steps its inner optimizer once a group or sub-group: while an engine steps, the
    optimizers inside it are not listened to.
    """

    def __init__(self, session: Session, on_step: Callable[[int], None]):
        self._observer = session.guard.observer("step_counter", ("mark",))
        self.steps = 0  # complete ones
        self._on_step = on_step
        self._leader: Optional[int] = None
        self.engine_depth = 0

    def install(self, patches: PatchBook) -> None:
        """Registers PyTorch's global hook behind every step of every optimizer."""
        register = optimizer_hooks.register_optimizer_step_post_hook
        patches.hook(register, self._observer, self._after_step)

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
        guard = self._session.guard
        steps = guard.observer("optimizer.step", ("opt.step",))
        register = optimizer_hooks.register_optimizer_step_pre_hook
        patches.hook(register, steps, self._before_step)
        clears = guard.observer("optimizer.zero_grad", ("opt.zero_grad",))
        patches.observe(torch.optim.Optimizer, "zero_grad", clears, before=self._before_zero_grad)

    def _before_zero_grad(self, _call: Call) -> None:
        if not self._counter.engine_depth:
            self._session.emit("opt.zero_grad")

    def _before_step(self, optimizer, _args, _kwargs) -> None:
        if not self._counter.engine_depth:
            rates = [float(group.get("lr", 0.0)) for group in optimizer.param_groups]
            self._session.emit("opt.step", {"engine": 0, "lr": rates})
