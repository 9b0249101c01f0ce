"""What an engine has to offer, so that programs run on it: a user's own, too."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from zeroproof_subject.models import Root
from zeroproof_subject.settings import Settings


@dataclass
class Job:
    """What an engine is made for."""

    model: Root
    groups: list[list[torch.nn.Parameter]]  # of the optimizer
    settings: Settings
    config: dict[str, Any]  # the program's ds_config.json: what differs from the defaults
    rank: int
    ranks: int
    has_callbacks: bool = True  # else as if autograd had no callback after a backward

    def optimizer_groups(self) -> list[dict[str, Any]]:
        """The groups as torch.optim takes them."""
        return [{"params": list(group)} for group in self.groups]


@dataclass(frozen=True)
class View:
    """How a twin of a program sees it (relations.py)."""

    shift: int = 0  # ranks have the data of the rank so many further on
    loss_factor: float = 1.0  # of the tensors that backwards begin with


@dataclass(frozen=True)
class Truth:
    """Where engines agree with no page of PyTorch's: how plain PyTorch has to train beside one."""

    missing_is_zero: bool = False  # parameters without a gradient are stepped as with zeros
    divides_tensor_backward: bool = False  # loss.backward() is divided by the micro-batches, too

    @staticmethod
    def of(module: Any) -> Truth:
        """Of an engine's module."""
        return Truth(
            missing_is_zero=getattr(module, "MISSING_IS_ZERO", False),
            divides_tensor_backward=getattr(module, "DIVIDES_TENSOR_BACKWARD", False),
        )


class Engine(Protocol):
    """Trains a model on all ranks. Tensors that it returns are whole, on every rank."""

    def __call__(self, *arguments: Any) -> Any:
        """The model's forward."""

    def backward(self, loss: Tensor, **options: bool) -> None:
        """Options are retain_graph, create_graph and scale_wrt_gas, where they are not default."""

    def scale(self, loss: Tensor) -> Tensor:
        """Times the loss scale."""

    def tensor_backward(self, loss: Tensor, **options: bool) -> None:
        """loss.backward(), which the engine learns of by its hooks alone."""

    def step(self) -> None:
        """Ends a micro-batch; the last one of a window updates the parameters."""

    def zero_grad(self) -> None:
        """Drops the gradients of the window."""

    def no_sync(self) -> contextlib.AbstractContextManager:
        """Backwards inside leave their gradients on their rank."""

    def will_step(self) -> bool:
        """Whether the next step() updates the parameters."""

    def gradients(self) -> dict[str, Tensor | None] | None:
        """Averaged over ranks, before clipping, by the parameter's name; asked before a step().

        None: they cannot be read now.
        """

    def parameters(self) -> dict[str, Tensor]:
        """By name."""

    def optimizer_state(self) -> dict[str, dict[str, Tensor]]:
        """By the parameter's name and the state's, as "exp_avg"."""

    def save(self, tag: str) -> None:
        """Keeps parameters and the state of the optimizer."""

    def load(self, tag: str) -> None:
        """Takes them back."""

    def set_learning_rate(self, group: int | None, learning_rate: float) -> None:
        """Of one parameter group, or of all."""


def trained_parameters(model: Root) -> dict[str, torch.nn.Parameter]:
    """Those that have gradients now, by name."""
    return {name: it for name, it in model.named_parameters() if it.requires_grad}
