"""Activation checkpoints: the forward of a region, and each time it is computed again."""

from __future__ import annotations

import functools
import sys

import torch
import torch.utils.checkpoint as torch_checkpoint
from torch import nn

from .names import NameBook
from .patches import PatchBook
from .session import Session

_STOP = "_StopRecomputationError"
# Modules that hold a reference of their own to PyTorch's generator.
_USERS = ("torch.distributed._composable.checkpoint_activation",)


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
        self._watch_reentrant(torch_checkpoint.CheckpointFunction, patches)
        deepspeed = sys.modules.get("deepspeed.runtime.activation_checkpointing.checkpointing")
        if deepspeed is not None:
            self._watch_reentrant(deepspeed.CheckpointFunction, patches)
        name = "_checkpoint_without_reentrant_generator"
        generator = self._generator(getattr(torch_checkpoint, name))
        patches.set(torch_checkpoint, name, generator)
        for user in _USERS:
            module = sys.modules.get(user)
            if module is not None and hasattr(module, name):
                patches.set(module, name, generator)

    def _watch_reentrant(self, function, patches: PatchBook) -> None:
        original = function.forward

        @functools.wraps(original)
        def forward(ctx, run_function, *args):
            if self._session.is_open:
                run_function = _Region(self, run_function)
            return original(ctx, run_function, *args)

        patches.set(function, "forward", staticmethod(forward))

    def _generator(self, original):
        @functools.wraps(original)
        def generator(function, *args, **kwargs):
            if not self._session.is_open:
                yield from original(function, *args, **kwargs)
                return
            region = _Region(self, function)
            inner = original(region.recompute, *args, **kwargs)
            next(inner)
            with region.forward_bracket():
                yield
            yield from inner

        return generator

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

    def __init__(self, owner: Checkpoints, function):
        self._session = owner._session
        self._function = function
        self._label = owner.label(function)
        self._runs = 0

    def __call__(self, *args, **kwargs):
        """The function of a reentrant region: first the forward, later recomputes."""
        if self._runs:
            return self.recompute(*args, **kwargs)
        with self.forward_bracket():
            return self._function(*args, **kwargs)

    def recompute(self, *args, **kwargs):
        """Runs the function once more."""
        with _Bracket(self._session, "ckpt.recompute", self._label, max(self._runs, 1)):
            self._runs = max(self._runs, 1) + 1
            return self._function(*args, **kwargs)

    def forward_bracket(self) -> _Bracket:
        """Around the forward of the region."""
        self._runs = 1
        return _Bracket(self._session, "ckpt.forward", self._label, 0)


class _Bracket:
    def __init__(self, session: Session, kind: str, label: str, run: int):
        self._session = session
        self._kind = kind
        self._fields = {"label": label, "n": run}

    def __enter__(self):
        grad_mode = int(torch.is_grad_enabled())
        self._session.emit(self._kind + "_begin", {**self._fields, "gm": grad_mode})

    def __exit__(self, failure, *_):
        ended = dict(self._fields)
        if failure is not None and failure.__name__ == _STOP:
            ended["early_stop"] = True
        elif failure is not None:
            ended["exc"] = failure.__name__
        self._session.emit(self._kind + "_end", ended)
