"""Where ranks compute: a GPU each where the machine has so many, else on its CPU.

CUDA_VISIBLE_DEVICES says which GPUs there are; empty, all ranks are on the CPU.
"""

from __future__ import annotations

import functools
import os

# Otherwise counting GPUs begins CUDA, and a process that is forked afterwards cannot use it.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

_place = "cpu"


@functools.cache
def gpus() -> int:
    """How many GPUs ranks may use."""
    import torch

    return torch.cuda.device_count() if torch.backends.cuda.is_built() else 0


def kind(ranks: int) -> str:
    """Of a group with so many ranks, as PyTorch names it."""
    return "cuda" if 0 < ranks <= gpus() else "cpu"


def enter(rank: int, ranks: int) -> str:
    """Puts tensors that this thread makes on the rank's device; the backend of its group.

    Code that may run in a thread of autograd (a recompute, a hook) names the device: here().
    """
    global _place
    if kind(ranks) == "cpu":
        return "gloo"
    import torch

    _place = f"cuda:{rank}"
    torch.cuda.set_device(rank)
    torch.set_default_device(_place)
    return "nccl"


def here() -> str:
    """The device of this process."""
    return _place


def worlds(numbers: list[int]) -> list[int]:
    """Those numbers of ranks that programs are drawn for: no more than GPUs, where there are any."""
    return [ranks for ranks in numbers if not gpus() or ranks <= gpus()]


def versions() -> dict[str, str]:
    """What findings on GPUs depend on."""
    import torch

    return {"cuda": str(torch.version.cuda), "gpus": str(gpus())} if gpus() else {}
