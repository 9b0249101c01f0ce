"""What a program's ds_config.json asks of every engine, and its optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from zeroproof_subject.program import Program


@dataclass(frozen=True)
class Settings:
    """The keys that change numbers, with their defaults."""

    accumulation_steps: int = 1
    is_managed: bool = True  # the engine counts micro-batches; else each step() is one
    clipping: float = 1.0
    optimizer: str = "Adam"
    params: dict[str, Any] | None = None

    @staticmethod
    def of(program: Program) -> Settings:
        """The settings of a program."""
        return Settings(
            accumulation_steps=program.setting("gradient_accumulation_steps", 1),
            is_managed=program.setting("managed_gradient_accumulation", True),
            clipping=program.setting("gradient_clipping", 1.0),
            optimizer=program.setting("optimizer/type", "Adam"),
            params=program.setting("optimizer/params", {}),
        )


# Defaults of a ds_config.json (docs/reference/config.md), where torch has others.
_ADAM = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}
_SGD = {"lr": 1e-3, "momentum": 0.0, "weight_decay": 0.0, "dampening": 0.0, "nesterov": False}


def optimizer_kind(settings: Settings) -> tuple[str, dict[str, Any]]:
    """The name in torch.optim, and its arguments."""
    given = dict(settings.params or {})
    given.pop("torch_adam", None)  # which of DeepSpeed's Adams
    is_decoupled = given.pop("adam_w_mode", True) or settings.optimizer == "AdamW"
    if settings.optimizer == "SGD":
        return "SGD", _SGD | given
    return "AdamW" if is_decoupled else "Adam", _ADAM | given


def make_optimizer(settings: Settings, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    """PyTorch's own optimizer over the groups."""
    name, arguments = optimizer_kind(settings)
    return getattr(torch.optim, name)(groups, **arguments)


def optimizer_call(settings: Settings, groups: str) -> str:
    """The same as a line of Python."""
    name, arguments = optimizer_kind(settings)
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"torch.optim.{name}({groups}, {given})"
