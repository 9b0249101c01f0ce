"""Optimizers: what they hold, their steps, and the count that limits a recording to some steps."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch
from torch.optim import optimizer as optimizer_hooks

from .calls import Call
from .names import NameBook
from .patches import PatchBook
from .session import Session

# Where DeepSpeed's optimizers keep the parameters of the model, each with its groups in a list.
_MODEL_GROUPS = ("bit16_groups", "fp16_groups", "bf16_groups")

# So many calls of zero_grad without a step, where anything was compiled, are reported in a note.
UNSEEN_STEPS = 3


class StepCounter:
    """Counts the steps of the optimizer that steps first; an engine's steps count instead.

    DeepSpeed steps its inner optimizer once a group or sub-group: while an engine steps, the
    optimizers inside it are not listened to.
    """

    def __init__(self, session: Session, on_step: Callable[[int], None]):
        self._observer = session.guard.observer("step_counter", ("mark",))
        self.steps = 0  # complete ones
        self._on_step = on_step
        self._leader: Optional[weakref.ref] = None
        self.engine_depth = 0
        self.on_stepped: Optional[Callable[..., None]] = None  # called before the step is counted

    def install(self, patches: PatchBook) -> None:
        """Registers PyTorch's global hook after every step of every optimizer."""
        register = optimizer_hooks.register_optimizer_step_post_hook
        patches.hook(register, self._observer, self._after_step)

    def _after_step(self, optimizer, args, kwargs) -> None:
        """The hook stays: PyTorch allows no hook to come or go while it calls them."""
        if self.engine_depth or is_nested_step(optimizer):
            return
        if self.on_stepped is not None:
            self.on_stepped(optimizer, args, kwargs)
        if self._leader is None or self._leader() is None:
            self._leader = weakref.ref(optimizer)
        if self._leader() is optimizer:
            self.count()

    def count(self) -> None:
        """One more step is complete."""
        self.steps += 1
        self._on_step(self.steps)


class OptimizerBook:
    """Numbers optimizers in the order of their first steps, and writes what each of them holds."""

    def __init__(self, session: Session, names: NameBook):
        self._session = session
        self._names = names
        self._numbers: dict[int, int] = {}
        self._references: dict[int, weakref.ref] = {}
        self._told: dict[int, Any] = {}
        self._met = 0

    def number(self, optimizer: Any, engine: Optional[int] = None) -> int:
        """The id of an optimizer; its record is written first if it says anything new."""
        number = self._number(optimizer)
        params = held_params(optimizer)
        frozen = sum(not param.requires_grad for param in params)
        signature = (tuple(map(id, params)), frozen, self._names.version)
        if self._told.get(number) != signature:
            self._told[number] = signature
            self._session.add(self._record(number, optimizer, params, frozen, engine))
        return number

    def _number(self, optimizer: Any) -> int:
        key = id(optimizer)
        if key not in self._numbers:
            self._numbers[key] = self._met
            self._met += 1
            self._references[key] = weakref.ref(optimizer, lambda _: self._numbers.pop(key, None))
        return self._numbers[key]

    def _record(self, number, optimizer, params, frozen, engine) -> dict[str, Any]:
        known = self._names.known(params)
        record = {
            "rec": "optimizer",
            "id": number,
            "class": type(optimizer).__name__,
            "params": known,
            "unknown": len(params) - len(known),
            "frozen": frozen,
        }
        return record if engine is None else {**record, "engine": engine}


class OptimizerEvents:
    """Emits opt.step and opt.zero_grad of plain optimizers.

    A closure is part of the step: it computes the gradients that the step uses. Such a step is
    written when it has returned, after everything that the closure did.
    """

    def __init__(self, session: Session, names: NameBook, counter: StepCounter, facts: Any):
        self._session = session
        self._names = names
        self._counter = counter
        self._facts = facts  # called before and after each step: ModelFacts
        self._cleared: dict[int, int] = {}  # by optimizer without a step: calls of zero_grad
        self._stepped: set[int] = set()

    def install(self, patches: PatchBook) -> None:
        """Registers the hook before a step, asks for word after it, and watches zero_grad."""
        guard = self._session.guard
        steps = guard.observer("optimizer.step", ("opt.step",))
        patches.hook(optimizer_hooks.register_optimizer_step_pre_hook, steps, self._before_step)
        self._counter.on_stepped = steps.guarded(self._after_step)
        patches.then(self._leave)
        clears = guard.observer("optimizer.zero_grad", ("opt.zero_grad",))
        for owner in (torch.optim.Optimizer, torch.nn.Module):
            patches.observe(owner, "zero_grad", clears, before=self._before_zero_grad)

    def _before_zero_grad(self, call: Call) -> None:
        owner = call.subject
        if self._counter.engine_depth:
            return
        if isinstance(owner, torch.nn.Module):
            first = next(owner.parameters(), None)
            if first is None or self._names.known_param(first) is None:
                return
        elif id(owner) not in self._stepped:
            self._count_cleared(owner)
        self._session.emit("opt.zero_grad")

    def _count_cleared(self, optimizer: Any) -> None:
        """A compiled step calls no hook: only that the optimizer is used can be seen."""
        count = self._cleared[id(optimizer)] = self._cleared.get(id(optimizer), 0) + 1
        if count == UNSEEN_STEPS and _has_compiled():
            name = type(optimizer).__name__
            text = f"no step of {name} is seen: a compiled step is not recorded and not counted"
            note = {"rec": "note", "text": text, "observer": "optimizer.step", "lost": ["opt.step"]}
            self._session.add(note)

    def _before_step(self, optimizer, args, kwargs) -> None:
        if self._counter.engine_depth or is_nested_step(optimizer):
            return
        self._stepped.add(id(optimizer))
        has_closure = closure_of(args, kwargs) is not None
        number = self._facts.optimizers.number(optimizer)
        self._facts.before_step(optimizer, number, has_closure)
        if not has_closure:
            self._tell(optimizer, number, None)

    def _leave(self) -> None:
        self._counter.on_stepped = None

    def _after_step(self, optimizer, args, kwargs) -> None:
        has_closure = closure_of(args, kwargs) is not None
        number = self._facts.optimizers.number(optimizer)
        if has_closure:
            self._tell(optimizer, number, True)
        self._facts.after_step(optimizer, number, has_closure)

    def _tell(self, optimizer, number: int, closure: Optional[bool]) -> None:
        params = held_params(optimizer)
        engines = (self._names.engine_of(p) for p in params if self._names.known_param(p))
        fields = {
            "engine": next(engines, 0),
            "lr": _rates(optimizer),
            "optimizer": number,
            "closure": closure,
            "grads": sum(param.grad is not None for param in params),
        }
        self._session.emit("opt.step", fields)


def held_params(optimizer: Any) -> list[torch.Tensor]:
    """The parameters of the model that an optimizer updates, DeepSpeed's optimizers included."""
    for name in _MODEL_GROUPS:
        groups = getattr(optimizer, name, None)
        if groups:
            return [param for group in groups for param in group]
    groups = getattr(optimizer, "param_groups", None) or ()
    return [param for group in groups for param in group.get("params", ())]


def closure_of(args: tuple, kwargs: dict[str, Any]) -> Optional[Callable]:
    """What a step was given to compute the gradients with; its arguments begin with self."""
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    return closure if callable(closure) else None


def is_nested_step(optimizer: Any) -> bool:
    """Whether another optimizer steps this one as a part of its own step.

    ZeroRedundancyOptimizer does, and wrappers that derive from Optimizer. What a closure steps is
    no part: its parameters are others.
    """
    params = held_params(optimizer)
    if not params:
        return False
    return any(
        any(param is params[0] for param in held_params(outer))
        for outer in _stepping()
        if outer is not optimizer
    )


def _stepping() -> Iterator[Any]:
    """The optimizers whose steps are on this thread's stack, innermost first.

    The stack cannot be left in disorder by a step that raises, as a list of begun steps could.
    """
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "wrapper" and code.co_filename == optimizer_hooks.__file__:
            optimizer = frame.f_locals.get("self")
            if optimizer is not None:
                yield optimizer
        frame = frame.f_back


def _has_compiled() -> bool:
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(dynamo is not None and dynamo.counters.get("stats"))


def _rates(optimizer: Any) -> Optional[list[float]]:
    """A rate that lies on a device is not fetched: that would wait for the device."""
    rates = [group.get("lr", 0.0) for group in optimizer.param_groups]
    if any(isinstance(rate, torch.Tensor) and rate.device.type != "cpu" for rate in rates):
        return None
    return [float(rate) for rate in rates]
