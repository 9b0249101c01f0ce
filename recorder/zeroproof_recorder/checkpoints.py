"""Activation checkpoints: the forward of a region, and each time it is computed again."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Optional

import torch
import torch.utils.checkpoint as torch_checkpoint
from torch import nn

from .calls import Call, Function, Use, observed, with_stand_in
from .effect import names_read
from .guard import Observer
from .names import NameBook
from .patches import PatchBook
from .session import Session

_STOP = "_StopRecomputationError"
_LOST = ("ckpt.*",)
_GENERATOR = "_checkpoint_without_reentrant_generator"  # how its name begins
_DEEPSPEED = "deepspeed.runtime.activation_checkpointing.checkpointing"


class Checkpoints:
    """Watches both variants of torch.utils.checkpoint, and DeepSpeed's.

    The functions that user code has imported by name stay as they are: what is replaced lies
    below them.
    """

    def __init__(self, session: Session, names: NameBook):
        self._session = session
        self._names = names

    def install(self, patches: PatchBook) -> None:
        """Replaces the forward of the reentrant Function and the generator of the other."""
        reentrant = self._observer("reentrant")
        self._watch_reentrant(torch_checkpoint, reentrant, patches, place=1)
        deepspeed = sys.modules.get(_DEEPSPEED)
        if deepspeed is not None:
            self._watch_reentrant(deepspeed, self._observer("deepspeed"), patches, place=1)
        self._watch_generator(self._observer("non_reentrant"), patches)

    def _observer(self, variant: str) -> Observer:
        return self._session.guard.observer(f"checkpoints.{variant}", _LOST)

    def _watch_reentrant(self, module, observer: Observer, patches: PatchBook, place: int) -> None:
        def region(function: Function) -> Function:
            return _Region(self._session, self.label(function)).stand_in(function, observer)

        def make(original: Function) -> Function:
            return with_stand_in(original, observer, patches.use, region, place=place)

        function = getattr(module, "CheckpointFunction", None)
        patches.stand_in(function, "forward", observer, make)

    def _watch_generator(self, observer: Observer, patches: PatchBook) -> None:
        name = _generator_in_use()
        if name is None:
            observer.unobserved(f"torch.utils.checkpoint.checkpoint calls no {_GENERATOR}")
            return

        def region(function: Function) -> Function:
            return _Region(self._session, self.label(function), 1).stand_in(function, observer)

        def make(original: Function) -> Function:
            return with_stand_in(
                original, observer, patches.use, region, functools.partial(_Resumed, observer)
            )

        patches.stand_in(torch_checkpoint, name, observer, make)

    def label(self, function) -> str:
        """What a region is called: its module's name, else its function's."""
        if isinstance(function, functools.partial):
            return self.label(function.func)
        owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
        if isinstance(owner, nn.Module):
            return self._names.module_word(owner)
        name = getattr(function, "__qualname__", type(function).__name__)
        return name.replace("<locals>.", "")


class _Region:
    """One call of checkpoint(): counts how often its function runs."""

    def __init__(self, session: Session, label: str, runs: int = 0):
        self._session = session
        self._label = label
        self._runs = runs  # the forward of a non-reentrant region calls its function directly

    def stand_in(self, function: Function, observer: Observer) -> Function:
        """The function: at first it is the forward of its region, then it recomputes."""
        stand_in = observed(function, observer, Use(), self._begins, self._ends)
        stand_in.region = self
        return stand_in

    def begin(self, kind: str, run: int) -> dict[str, Any]:
        """Emits a begin; what `end` needs."""
        fields = {"label": self._label, "n": run}
        self._session.emit(f"{kind}_begin", {**fields, "gm": int(torch.is_grad_enabled())})
        return {"kind": kind, **fields}

    def end(self, begun: Optional[dict[str, Any]], failure: Optional[str]) -> None:
        """Emits the end of what has begun."""
        if begun is None:
            return
        ended = {"label": begun["label"], "n": begun["n"]}
        if failure == _STOP:
            ended["early_stop"] = True
        elif failure is not None:
            ended["exc"] = failure
        self._session.emit(begun["kind"] + "_end", ended)

    def _begins(self, call: Call) -> None:
        kind = "ckpt.recompute" if self._runs else "ckpt.forward"
        call.token = self.begin(kind, self._runs)
        self._runs += 1

    def _ends(self, call: Call) -> None:
        self.end(call.token, call.failure)


class _Resumed:
    """The generator of a non-reentrant checkpoint, which is resumed around the forward."""

    def __init__(self, observer: Observer, stand_in: Function, generator: Any):
        self._generator = generator
        self._begin = observer.guarded(functools.partial(stand_in.region.begin, "ckpt.forward", 0))
        self._end = observer.guarded(stand_in.region.end)
        self._is_new = True
        self._begun: Optional[dict[str, Any]] = None

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Before the forward, then after it."""
        self._leave(None)
        yielded = self._generator.send(value)
        if self._is_new:
            self._is_new = False
            self._begun = self._begin()
        return yielded

    def throw(self, error: Any, *more: Any) -> Any:
        """After a forward that failed."""
        kind = error if isinstance(error, type) else type(error)
        self._leave(kind.__name__)
        return self._generator.throw(error, *more)

    def close(self) -> None:
        """After a forward that failed, in versions that only let the generator go."""
        self._leave("GeneratorExit")
        self._generator.close()

    def __del__(self):
        self._leave("GeneratorExit")

    def _leave(self, failure: Optional[str]) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            self._end(begun, failure)


def _generator_in_use() -> Optional[str]:
    """The innermost of PyTorch's generators that checkpoint() goes through."""
    read: Callable[[Any], set[str]] = names_read
    reached = {name for name in read(torch_checkpoint.checkpoint) if name.startswith(_GENERATOR)}
    for name in sorted(reached):
        if not reached & read(getattr(torch_checkpoint, name)):
            return name
    return None
