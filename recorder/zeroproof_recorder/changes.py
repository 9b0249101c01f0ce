"""What changes in a model after it was met: new parameters, requires_grad, gradients left over."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import nn

from .names import NameBook
from .session import Session

# Of gradients that may have been left over, this many are looked at, until one is not zero.
SAMPLES = 3


class ModelChanges:
    """Watches one model for what a later event needs to be understood.

    The watch keeps what each table of the model held, so that a look costs a comparison a
    parameter.
    """

    def __init__(
        self,
        session: Session,
        names: NameBook,
        model: nn.Module,
        number: int,
        on_new: Callable[[nn.Module, int], None],
    ):
        self._session = session
        self._names = names
        self._model = model
        self._number = number
        self._on_new = on_new
        self._kept: list[Any] = []
        self._held: list[tuple[dict, tuple[int, ...]]] = []
        self.params: list[torch.Tensor] = []
        self._used: dict[int, tuple[weakref.ref, int]] = {}
        self._walk()

    def look(self) -> None:
        """Declares new parameters, and marks those whose requires_grad is another now."""
        if any(tuple(map(id, table.values())) != held for table, held in self._held):
            self._declare_new()
        changed = self._names.with_other_requires_grad(self.params)
        for param in changed:
            self._mark_requires_grad(param)
        if any(param.requires_grad for param in changed):
            self._on_new(self._model, self._number)

    def note_used(self, params: set[int]) -> None:
        """A step has used the gradients of these parameters, which are given by identity."""
        for param in self.params:
            grad = param.grad if id(param) in params else None
            if grad is not None and not grad.is_inference():
                self._used[id(param)] = (weakref.ref(grad), grad._version)

    def mark_kept(self) -> None:
        """Says how many gradients of the last step the next backward will add to."""
        used, self._used = self._used, {}
        if not used:
            return
        kept = [p.grad for p in self.params if _is_kept(p.grad, used.get(id(p)))]
        if any(_is_nonzero(grad) for grad in kept[:SAMPLES]):
            fields = {"label": f"gradients_kept:{len(kept)}", "engine": self._number}
            self._session.emit("mark", fields)

    def _declare_new(self) -> None:
        version = self._names.version
        for record in self._names.add_model(self._model, self._number):
            self._session.add(record)
        self._walk()
        if self._names.version != version:
            self._on_new(self._model, self._number)

    def _mark_requires_grad(self, param: torch.Tensor) -> None:
        name = self._names.known_param(param)
        if name is not None:
            word = "true" if param.requires_grad else "false"
            fields = {"label": f"requires_grad:{word}", "param": name, "engine": self._number}
            self._session.emit("mark", fields)
            self._names.tell_requires_grad(param)

    def _walk(self) -> None:
        modules = list(self._model.modules())
        tables = [table for module in modules for table in (module._parameters, module._modules)]
        self._held = [(table, tuple(map(id, table.values()))) for table in tables]
        self._kept = [value for table in tables for value in table.values()]  # ids stay their own
        self.params = [p for p in self._model.parameters() if self._names.known_param(p)]


def _is_kept(grad: Optional[torch.Tensor], used: Optional[tuple[weakref.ref, int]]) -> bool:
    """Whether it is the same tensor, and no operation has changed it in place."""
    return used is not None and grad is not None and grad is used[0]() and grad._version == used[1]


def _is_nonzero(grad: torch.Tensor) -> bool:
    """The value is read only of a gradient that has not been touched since a step used it."""
    local = getattr(grad, "_local_tensor", grad)
    if local.is_sparse or local.is_meta or local.numel() == 0:
        return False
    with torch.no_grad():
        return bool(torch.count_nonzero(local.detach()))
