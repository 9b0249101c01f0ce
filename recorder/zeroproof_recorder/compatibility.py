"""Whether this PyTorch can be recorded."""

from __future__ import annotations

import re

import torch

from .errors import RecorderError
from .version import VERSION

MINIMUM_TORCH = (2, 4)


def check_torch() -> None:
    """Raises where PyTorch is too old or lacks what the recorder observes."""
    found = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if found < MINIMUM_TORCH:
        wanted = ".".join(map(str, MINIMUM_TORCH))
        raise RecorderError(f"PyTorch {torch.__version__}: the recorder needs {wanted} or newer")
    needed = (
        (torch._C, "_current_graph_task_id"),
        (torch.autograd.graph, "_engine_run_backward"),
        (torch._C._functorch, "peek_interpreter_stack"),
    )
    for owner, name in needed:
        if not hasattr(owner, name):
            raise RecorderError(
                f"PyTorch {torch.__version__} has no {name}: this recorder ({VERSION}) is older "
                "than your PyTorch; please upgrade zeroproof-recorder"
            )
