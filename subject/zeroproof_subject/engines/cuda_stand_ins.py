"""What Megatron-core asks torch.cuda for, answered on CPUs.

Megatron-core names the device "cuda" where it makes small tensors, asks for the current device, and
knows dtypes by the names of CUDA tensors ("torch.cuda.FloatTensor"). No computation is replaced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

FACTORIES = ("tensor", "zeros", "empty")
CPU = torch.device("cpu")


class Stream:
    """A stream of a CPU, whose work is done before anything can wait for it."""

    def wait_event(self, event: object) -> None:
        """There is no need to."""

    def wait_stream(self, stream: Stream) -> None:
        """There is no need to."""


def apply() -> None:
    """For this process; it may be called again."""
    if hasattr(torch.Tensor.type, "of_cpu"):
        return
    for name in FACTORIES:
        setattr(torch, name, on_cpu(getattr(torch, name)))
    torch.cuda.current_device = lambda: CPU
    torch.cuda.current_stream = Stream  # 0.19.2 asks for it, 0.16.1 does not
    torch.Tensor.type = with_cuda_name(torch.Tensor.type)
    torch.Tensor.cuda = lambda tensor, *arguments, **options: tensor


def on_cpu(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A factory that takes "cuda" for the CPU."""

    @functools.wraps(make)
    def make_on_cpu(*arguments: Any, **options: Any) -> torch.Tensor:
        if options.get("device") == "cuda":
            options["device"] = CPU
        return make(*arguments, **options)

    return make_on_cpu


def with_cuda_name(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Tensor.type, whose name of a CPU tensor is the one of a CUDA tensor."""

    def type_of(tensor: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        answer = plain(tensor, *arguments, **options)
        return answer.replace("torch.", "torch.cuda.", 1) if isinstance(answer, str) else answer

    type_of.of_cpu = plain
    return type_of
