"""Facts of the models that stand beside the events: wrappers, changes, optimizers, numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import nn

from .changes import ModelChanges
from .names import NameBook, fsdp2_groups
from .numbers import EngineGrads, Numbers, plain_grad
from .optimizers import OptimizerBook, StepCounter, held_params
from .session import Session
from .wrappers import WrapperBook


class ModelFacts:
    """Looks at the models at the moments at which a look is cheap: before backwards and steps."""

    def __init__(self, session: Session, names: NameBook, counter: StepCounter, group_name):
        self._session = session
        self._names = names
        self._counter = counter
        self._wrappers = WrapperBook(session, group_name)
        self._changes: dict[int, ModelChanges] = {}
        self._sharded: dict[int, nn.Module] = {}
        self._numbers = Numbers(session, names) if session.options.has_numbers else None
        self.optimizers = OptimizerBook(session, names)

    # ---- models ------------------------------------------------------------------------------

    def attach(self, model: nn.Module, inner: nn.Module, number: int, on_new: Callable) -> None:
        """Begins with a model that has got its names; `model` is what wraps `inner`."""
        self._wrappers.attach(model, number)
        self._changes[number] = ModelChanges(self._session, self._names, inner, number, on_new)
        if any(fsdp2_groups(module) for module in inner.modules()):
            self._sharded[number] = inner

    def clear(self) -> None:
        """The recorded steps are over for now."""
        if self._numbers is not None:
            self._numbers.write()
        self._changes.clear()
        self._sharded.clear()

    # ---- moments -----------------------------------------------------------------------------

    def before_backward(self) -> None:
        """Before an outermost backward, outside of every graph task."""
        for number, changes in self._changes.items():
            changes.mark_kept()
            if number not in self._sharded:
                self._look(number, changes)
        for number, model in self._sharded.items():
            if not _reduces(model):
                self._session.emit("mark", {"label": "fsdp2.no_sync", "engine": number})

    def before_step(self, optimizer: Any, number: int, has_closure: bool) -> None:
        """Before a step of a plain optimizer."""
        self._look_at_sharded()
        if self._numbers is not None:
            grad_of = None if has_closure else plain_grad
            self._numbers.before_step(self._step_of(number), held_params(optimizer), grad_of)

    def after_step(self, optimizer: Any, number: int, has_closure: bool) -> None:
        """After a step of a plain optimizer."""
        params = held_params(optimizer)
        used = set(map(id, params))
        for changes in self._changes.values():
            changes.note_used(used)
        if self._numbers is not None:
            grad_of = plain_grad if has_closure else None
            self._numbers.after_step(self._step_of(number), params, grad_of)

    def before_engine_step(self, engine: Any, number: int) -> Optional[int]:
        """Before DeepSpeed's engine steps; the id of its optimizer, None without one."""
        params = held_params(engine.optimizer) if self._session.is_open else None
        if not params:
            return None
        self._look_at_sharded()
        optimizer = self.optimizers.number(engine.optimizer, number)
        if self._numbers is not None and engine.is_gradient_accumulation_boundary():
            facts = {**self._step_of(optimizer), "engine": number}
            self._numbers.before_step(facts, params, EngineGrads(engine.optimizer))
        return optimizer

    def after_engine_step(self, engine: Any, number: int) -> None:
        """After a step that was one, before it is counted."""
        params = held_params(engine.optimizer) if self._session.is_open else None
        if self._numbers is not None and params:
            optimizer = self.optimizers.number(engine.optimizer, number)
            facts = {**self._step_of(optimizer), "engine": number}
            self._numbers.after_step(facts, params, None)

    def _step_of(self, optimizer: int) -> dict[str, Any]:
        return {"step": self._counter.steps, "optimizer": optimizer}

    def _look_at_sharded(self) -> None:
        """Before a backward FSDP2 may show whole parameters: it is looked at before a step."""
        for number in self._sharded:
            self._look(number, self._changes[number])

    def _look(self, number: int, changes: ModelChanges) -> None:
        changes.look()
        self._wrappers.tell(number, changes.params)


def _reduces(model: nn.Module) -> bool:
    groups = [group for module in model.modules() for group in fsdp2_groups(module)]
    return all(getattr(group, "reduce_grads", True) for group in groups)
