"""Micro-batches, windows and clipping, for engines whose step is torch.optim's."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor

from zeroproof_subject.engine import Job, trained_parameters
from zeroproof_subject.settings import make_optimizer


class WindowedEngine:
    """An engine whose parameters have their averaged gradients in .grad when a window ends."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.settings = job.settings
        self.module: torch.nn.Module = job.model
        self.optimizer = make_optimizer(job.settings, job.optimizer_groups())
        self.micro_batches = 0  # of this window, that have ended
        self.boundary: bool | None = None  # what the user says it is

    def __call__(self, *arguments: Any) -> Any:
        return self.module(*arguments)

    def backward(self, loss: Tensor, scale_wrt_gas: bool = True, **options: bool) -> None:
        """Divided by the number of micro-batches."""
        steps = self.settings.accumulation_steps if scale_wrt_gas else 1
        (loss / steps).backward(**options)

    def tensor_backward(self, loss: Tensor, **options: bool) -> None:
        """The user's own division, if any."""
        loss.backward(**options)

    def will_step(self) -> bool:
        """A window ends."""
        if not self.settings.is_managed:
            return True
        if self.boundary is not None:
            return self.boundary
        return (self.micro_batches + 1) % self.settings.accumulation_steps == 0

    def step(self) -> None:
        """Updates the parameters where a window ends."""
        if self.will_step():
            self.clip()
            self.optimizer.step()
            self.zero_grad()
        self.micro_batches += 1

    def clip(self) -> None:
        """All gradients together."""
        if self.settings.clipping > 0:
            parameters = [it for group in self.job.groups for it in group]
            torch.nn.utils.clip_grad_norm_(parameters, self.settings.clipping)

    def zero_grad(self) -> None:
        """Drops all gradients."""
        for parameter in self.module.parameters():
            parameter.grad = None

    def set_boundary(self, is_boundary: bool) -> None:
        """Holds until it is called again."""
        self.boundary = is_boundary

    def no_sync(self) -> contextlib.AbstractContextManager:
        """Gradients stay on their rank."""
        return contextlib.nullcontext()

    def coalesce(self) -> contextlib.AbstractContextManager:
        """One reduction for all backwards inside: no number changes."""
        return contextlib.nullcontext()

    def whole(self, tensor: Tensor) -> Tensor:
        """A copy that no later statement changes."""
        return tensor.detach().clone()

    def gradients(self) -> dict[str, Tensor | None]:
        """By name."""
        return {
            name: None if parameter.grad is None else self.whole(parameter.grad)
            for name, parameter in trained_parameters(self.job.model).items()
        }

    def parameters(self) -> dict[str, Tensor]:
        """By name."""
        return {name: self.whole(it) for name, it in self.job.model.named_parameters()}

    def optimizer_state(self) -> dict[str, dict[str, Tensor]]:
        """Tensors alone, and those of the parameter's shape."""
        states = {}
        for name, parameter in self.job.model.named_parameters():
            state = self.optimizer.state.get(parameter, {})
            states[name] = {
                key: self.whole(value)
                for key, value in state.items()
                if torch.is_tensor(value) and value.shape == parameter.shape and key != "step"
            }
        return states

    def set_learning_rate(self, group: int | None, learning_rate: float) -> None:
        """Of one group, or of all."""
        for at, options in enumerate(self.optimizer.param_groups):
            if group in (None, at):
                options["lr"] = learning_rate
