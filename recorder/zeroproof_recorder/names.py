"""What parameters and modules are called in a trace."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Optional

import torch
from torch import nn

Declare = Callable[[dict[str, Any]], None]


class NameBook:
    """Names of the parameters and modules of all models that are watched.

    The names of the first model that trains are its own; those of model n of the others begin with
    ``model<n>.``. So one name stands for one parameter, also when a frozen reference model has
    the same layers.
    """

    def __init__(self):
        self.version = 0  # grows with every name that is given
        self.declare: Declare = _nowhere  # takes the records of parameters that get a name late
        self._params: dict[int, str] = {}
        self._modules: dict[int, str] = {}
        self._engines: dict[int, int] = {}  # of a parameter
        self._requires_grad: dict[int, bool] = {}  # as the trace says
        self._references: dict[int, weakref.ref] = {}  # an id means something while its object lives
        self._by_memory: dict[int, tuple[str, torch.Tensor]] = {}
        self._holders: dict[str, int] = {}  # the tensor that has a name now
        self._unwrapped_model: Optional[int] = None  # the number of the model without a prefix
        self._kept: list[nn.Module] = []
        self._declared = 0
        self._strangers = 0

    # ---- models ------------------------------------------------------------------------------

    def add_model(self, model: nn.Module, engine: int) -> list[dict[str, Any]]:
        """Names everything in a model that has no name yet; gives the records that declare it.

        May be called again: a parameter that was replaced gets the name of its predecessor.
        """
        prefix = self._prefix(model, engine)
        if not any(model is kept for kept in self._kept):
            self._kept.append(model)
        for name, module in model.named_modules():
            self._modules.setdefault(id(module), prefix + name if name else f"{prefix}model")
        twins = _fsdp2_twins(model)
        records = []
        for name, param in model.named_parameters():
            tensors = twins.get(id(param), [param])
            if not any(id(tensor) in self._params for tensor in tensors):
                records.append(self._declared_record(prefix + name, param))
                self._retire(prefix + name)
            known = self.known_param(param) or prefix + name
            for tensor in tensors:
                if id(tensor) not in self._params:
                    self._give(tensor, known, engine)
            self._holders[known] = id(param)
        return records

    def name_module(self, module: nn.Module, name: str) -> None:
        """Gives a wrapper its name."""
        self._modules[id(module)] = name

    def alias(self, param: torch.Tensor, name: str) -> None:
        """Another tensor that stands for a named parameter."""
        if id(param) not in self._params:
            engine = self._engines.get(self._holders.get(name, 0), 0)
            self._give(param, name, engine)

    # ---- parameters --------------------------------------------------------------------------

    def param(self, param: torch.Tensor) -> str:
        """The name of a parameter; one of no recorded model gets a name of its own."""
        name = self._params.get(id(param))
        if name is not None:
            return name
        name = f"unnamed{self._strangers}{_shape(param)}"
        self._strangers += 1
        self.declare(self._declared_record(name, param))
        self._give(param, name, 0)
        return name

    def known_param(self, param: torch.Tensor) -> Optional[str]:
        """The name of a parameter, or None."""
        return self._params.get(id(param))

    def known(self, params: Iterable[torch.Tensor]) -> list[str]:
        """The names of those parameters that belong to a recorded model, in their order."""
        names = (self._params.get(id(param)) for param in params)
        return [name for name in names if name is not None]

    def engine_of(self, param: torch.Tensor) -> int:
        """Which model a parameter belongs to."""
        return self._engines.get(id(param), 0)

    def with_other_requires_grad(self, params: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """Those of which the trace says something else than what is true now."""
        told = self._requires_grad
        return [p for p in params if told.get(id(p), p.requires_grad) is not p.requires_grad]

    def tell_requires_grad(self, param: torch.Tensor) -> None:
        """The trace says now what is true now."""
        self._requires_grad[id(param)] = param.requires_grad

    def note_memory(self, param: torch.Tensor, tensor: torch.Tensor) -> None:
        """Where the data or the gradient of a parameter lies now."""
        self._by_memory[tensor.data_ptr()] = (self._params[id(param)], param)

    def param_at(self, tensor: torch.Tensor) -> Optional[str]:
        """The parameter whose data or gradient a tensor is, if it still is."""
        pointer = tensor.data_ptr()
        name, param = self._by_memory.get(pointer, (None, None))
        if name is None or tensor.numel() != param.numel():
            return None
        is_grad = param.grad is not None and param.grad.data_ptr() == pointer
        return name if is_grad or param.data_ptr() == pointer else None

    # ---- modules -----------------------------------------------------------------------------

    def module(self, module: nn.Module) -> Optional[str]:
        """The name of a module, or None if it is in no watched model."""
        return self._modules.get(id(module))

    def module_word(self, module: nn.Module) -> str:
        """The name of a module, else its class."""
        return self._modules.get(id(module)) or type(module).__name__

    # ---- how -----------------------------------------------------------------------------------

    def _prefix(self, model: nn.Module, engine: int) -> str:
        """Ranks find the same models in the same order, so prefixes agree between them."""
        if self._unwrapped_model is None and any(p.requires_grad for p in model.parameters()):
            self._unwrapped_model = engine
        return "" if self._unwrapped_model == engine else f"model{engine}."

    def _declared_record(self, name: str, param: torch.Tensor) -> dict[str, Any]:
        self._declared += 1
        return _param_record(self._declared - 1, name, param)

    def _give(self, tensor: torch.Tensor, name: str, engine: int) -> None:
        key = id(tensor)
        self.version += 1
        self._params[key] = name
        self._engines[key] = engine
        self._requires_grad[key] = tensor.requires_grad
        self._references[key] = weakref.ref(tensor, lambda _: self._forget(key))

    def _retire(self, name: str) -> None:
        """The tensor that had this name was replaced in its model."""
        former = self._holders.get(name)
        if former is not None and self._params.get(former) == name:
            for table in (self._params, self._engines, self._requires_grad, self._references):
                table.pop(former, None)

    def _forget(self, key: int) -> None:
        for table in (self._params, self._engines, self._requires_grad, self._references):
            table.pop(key, None)


def _param_record(index: int, name: str, param: torch.Tensor) -> dict[str, Any]:
    record = {
        "rec": "param",
        "id": index,
        "name": name,
        "shape": _shape(param),
        "dtype": dtype_word(param.dtype),
        "requires_grad": bool(param.requires_grad),
    }
    if is_sharded_tensor(param):
        record["sharded"] = True
    return record


def _shape(param: torch.Tensor) -> list[int]:
    shape = getattr(param, "ds_shape", None)  # ZeRO-3 keeps the whole shape there
    return list(shape if shape is not None else param.shape)


def is_sharded_tensor(param: torch.Tensor) -> bool:
    """Whether this rank holds a part of a parameter: FSDP2's, DTensor's, ZeRO-3's."""
    if getattr(param, "ds_id", None) is not None:
        return True
    placements = getattr(param, "placements", None) or ()
    return any(bool(placement.is_shard()) for placement in placements)


def fsdp2_groups(module: nn.Module) -> list[Any]:
    """FSDP2's parameter groups of one module; empty for a module that it does not shard."""
    state_of = getattr(module, "_get_fsdp_state", None)
    if state_of is None:
        return []
    state = state_of()
    groups = getattr(state, "_fsdp_param_groups", None)  # since PyTorch 2.11
    if groups is None:
        groups = [getattr(state, "_fsdp_param_group", None)]
    return [group for group in groups if group is not None]


def _fsdp2_twins(model: nn.Module) -> dict[int, list[torch.Tensor]]:
    """By each tensor that FSDP2 may show as a parameter: all that stand for the same one."""
    twins: dict[int, list[torch.Tensor]] = {}
    groups = (group for module in model.modules() for group in fsdp2_groups(module))
    for param in (param for group in groups for param in group.fsdp_params):
        names = ("sharded_param", "_unsharded_param")
        tensors = [getattr(param, name, None) for name in names]
        tensors = [tensor for tensor in tensors if tensor is not None]
        twins.update((id(tensor), tensors) for tensor in tensors)
    return twins


def dtype_word(dtype: torch.dtype) -> str:
    """A dtype without the name of its module."""
    return str(dtype).replace("torch.", "")


def _nowhere(_record: dict[str, Any]) -> None:
    pass
