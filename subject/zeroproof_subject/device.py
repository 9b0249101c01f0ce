"""Where ranks compute: a GPU each where the machine has so many, else on its CPU.

CUDA_VISIBLE_DEVICES says which GPUs there are; empty, all ranks are on the CPU.
"""

from __future__ import annotations

import os

# Otherwise counting GPUs begins CUDA, and a process that is forked afterwards cannot use it.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")


def gpus() -> int:
    """How many GPUs ranks may use."""
    import torch

    return torch.cuda.device_count() if torch.backends.cuda.is_built() else 0


def kind(ranks: int) -> str:
    """Of a group with so many ranks, as PyTorch names it."""
    return "cuda" if 0 < ranks <= gpus() else "cpu"


def enter(rank: int, ranks: int) -> str:
    """Puts all tensors that this process makes on the rank's device; the backend of its group."""
    if kind(ranks) == "cpu":
        return "gloo"
    import torch

    torch.cuda.set_device(rank)
    torch.set_default_device(f"cuda:{rank}")
    return "nccl"


def worlds(numbers: list[int]) -> list[int]:
    """Those numbers of ranks that programs are drawn for: no more than GPUs, where there are any."""
    return [ranks for ranks in numbers if not gpus() or ranks <= gpus()]


def versions() -> dict[str, str]:
    """What findings on GPUs depend on."""
    import torch

    return {"cuda": str(torch.version.cuda), "gpus": str(gpus())} if gpus() else {}
