"""What c10d of this PyTorch has: its operators, and the methods that give Python a Work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import torch
import torch.distributed as dist

# Operators whose name is not that of torch.distributed with a "_" after it.
NAMES = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce_coalesced",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather_into_tensor",
    "allgather_coalesced_": "all_gather_coalesced",
    "allgather_into_tensor_coalesced_": "all_gather_into_tensor_coalesced",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all_single",
    "recv_any_source_": "recv",
}
POINT_TO_POINT = ("send", "recv")
_FUNCTIONAL = "_c10d_functional::"
_NO_WORK = ("boxed", "unbox")


class Operator:
    """An operator of c10d, with its arguments by name."""

    def __init__(self, overload: Any):
        self.overload = overload
        self.key = overload._schema.name.split("::")[1]
        self.name = NAMES.get(self.key, self.key.rstrip("_"))
        self._arguments = {
            argument.name: (place, argument.default_value)
            for place, argument in enumerate(overload._schema.arguments)
        }
        self.is_point_to_point = self.name in POINT_TO_POINT

    def has(self, name: str) -> bool:
        """Whether the operator takes an argument of that name."""
        return name in self._arguments

    def pick(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The argument of that name, or its default; None where there is no such argument."""
        if name in kwargs:
            return kwargs[name]
        place, default = self._arguments.get(name, (len(args), None))
        return args[place] if place < len(args) else default


def operators() -> Iterator[Operator]:
    """Every operator that works on a process group."""
    for overload in _overloads("c10d::"):
        operator = Operator(overload)
        if operator.has("process_group"):
            yield operator


def functional_operators() -> list[Any]:
    """The operators of functional collectives; each of them calls one of `operators`."""
    return list(_overloads(_FUNCTIONAL))


def methods_with_work() -> list[str]:
    """Methods of ProcessGroup that return a Work, by what their documentation says."""
    found = vars(dist.distributed_c10d.ProcessGroup).items()
    return [name for name, method in found if _gives_work(name, method)]


def dtype_of(args: tuple) -> Optional[torch.dtype]:
    """That of the first tensor."""
    return next((tensor.dtype for arg in args for tensor in tensors_in(arg)), None)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an argument, those in lists included."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def bytes_of(value: Any) -> int:
    """The size of an argument."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_in(value))


def _overloads(namespace: str) -> Iterator[Any]:
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if name.startswith(namespace):
            packet, _, overload = name.split("::")[1].partition(".")
            library = getattr(torch.ops, namespace.rstrip(":"))
            yield getattr(getattr(library, packet), overload or "default")


def _gives_work(name: str, method: Any) -> bool:
    words = getattr(method, "__doc__", None) or ""
    returns = ("-> c10d::Work", "._distributed_c10d.Work")
    is_public_kind = not name.startswith("__") and name not in _NO_WORK
    return is_public_kind and callable(method) and any(word in words for word in returns)
