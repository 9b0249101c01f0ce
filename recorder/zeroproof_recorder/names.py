"""What parameters and modules are called in a trace."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import nn


class NameBook:
    """Names of the parameters and modules of all models that are watched.

    The first model's names are its own; those of the n-th begin with ``model<n>.``, so that no
    name stands for two things.
    """

    def __init__(self):
        self._params: dict[int, str] = {}
        self._modules: dict[int, str] = {}
        self._engines: dict[int, int] = {}  # of a parameter
        self._by_memory: dict[int, tuple[str, torch.Tensor]] = {}
        self._kept: list[nn.Module] = []  # an id means something only while its object lives

    def add_model(self, model: nn.Module, engine: int) -> list[dict[str, Any]]:
        """Names everything in a model; gives the records that declare its parameters."""
        prefix = f"model{engine}." if engine else ""
        self._kept.append(model)
        for name, module in model.named_modules():
            self._modules.setdefault(id(module), prefix + name if name else f"{prefix}model")
        records = []
        for name, param in model.named_parameters():
            if id(param) in self._params:
                continue
            records.append(_param_record(len(self._params), prefix + name, param))
            self._params[id(param)] = prefix + name
            self._engines[id(param)] = engine
        return records

    def name_module(self, module: nn.Module, name: str) -> None:
        """Gives a wrapper its name."""
        self._modules[id(module)] = name

    def alias(self, param: torch.Tensor, name: str) -> None:
        """Another tensor that stands for a named parameter."""
        self._params.setdefault(id(param), name)

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

    def param(self, param: torch.Tensor) -> str:
        """The name of a parameter; one that nobody has named tells its shape."""
        name = self._params.get(id(param))
        return name if name is not None else f"unnamed{list(param.shape)}"

    def known_param(self, param: torch.Tensor) -> Optional[str]:
        """The name of a parameter, or None."""
        return self._params.get(id(param))

    def engine_of(self, param: torch.Tensor) -> int:
        """Which model a parameter belongs to."""
        return self._engines.get(id(param), 0)

    def module(self, module: nn.Module) -> Optional[str]:
        """The name of a module, or None if it is in no watched model."""
        return self._modules.get(id(module))

    def module_word(self, module: nn.Module) -> str:
        """The name of a module, else its class."""
        return self._modules.get(id(module)) or type(module).__name__


def _param_record(index: int, name: str, param: torch.Tensor) -> dict[str, Any]:
    shape = getattr(param, "ds_shape", None)  # ZeRO-3 keeps the whole shape there
    return {
        "rec": "param",
        "id": index,
        "name": name,
        "shape": list(shape if shape is not None else param.shape),
        "dtype": dtype_word(param.dtype),
        "requires_grad": bool(param.requires_grad),
    }


def dtype_word(dtype: torch.dtype) -> str:
    """A dtype without the name of its module."""
    return str(dtype).replace("torch.", "")
