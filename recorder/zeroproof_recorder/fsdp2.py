"""FSDP2 (fully_shard): units, their gathers, and the final callback of the root."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .names import NameBook
from .patches import PatchBook
from .session import Session

# Where PyTorch keeps it: since 2.6, and before.
_PACKAGES = ("torch.distributed.fsdp._fully_shard", "torch.distributed._composable.fsdp")


def is_sharded(model) -> bool:
    """Whether fully_shard has been called on a model or on something in it."""
    return any(type(module).__name__.startswith("FSDP") for module in model.modules())


class Fsdp2Units:
    """A unit is what one fully_shard call gathers together."""

    def __init__(self, session: Session, names: NameBook, engine: int):
        self._session = session
        self._names = names
        self._engine = engine

    def install(self, patches: PatchBook) -> bool:
        """Replaces methods of FSDP2's classes; False if this PyTorch has none."""
        groups, states = _load("_fsdp_param_group"), _load("_fsdp_state")
        if groups is None or states is None:
            return False
        group = groups.FSDPParamGroup
        for method in ("pre_forward", "post_forward", "pre_backward", "post_backward"):
            patches.set(group, method, self._bracket(getattr(group, method), f"fsdp2.{method}"))
        patches.set(group, "unshard", self._unshard(group.unshard))
        patches.set(group, "wait_for_unshard", self._wait(group.wait_for_unshard))
        patches.set(group, "_to_sharded", self._reshard(group._to_sharded))
        final = "_root_post_backward_final_callback"
        state = states.FSDPState
        patches.set(state, final, self._bracket(getattr(state, final), "fsdp2.final_callback"))
        return True

    def _bracket(self, original, method: str):
        session = self._session

        @functools.wraps(original)
        def bracketed(unit, *args, **kwargs):
            fields = {"method": method, "engine": self._engine, "module": self._module(unit)}
            session.emit("engine.call", fields)
            failure = None
            try:
                return original(unit, *args, **kwargs)
            except BaseException as error:
                failure = type(error).__name__
                raise
            finally:
                session.emit("engine.return", {**fields, "exc": failure})

        return bracketed

    def _unshard(self, original):
        @functools.wraps(original)
        def unshard(unit, *args, **kwargs):
            if not unit.is_unsharded and unit._all_gather_result is None:
                forward = "FORWARD" in str(unit._training_state)
                fields = {"params": self._params(unit), "forward": forward, "engine": self._engine}
                self._session.emit("zparam.gather_begin", fields)
            return original(unit, *args, **kwargs)

        return unshard

    def _wait(self, original):
        @functools.wraps(original)
        def wait_for_unshard(unit):
            is_gathering = bool(unit._all_gather_result)
            original(unit)
            if is_gathering:
                self._alias_unsharded(unit)
                fields = {"params": self._params(unit), "engine": self._engine}
                self._session.emit("zparam.gather_end", fields)

        return wait_for_unshard

    def _reshard(self, original):
        @functools.wraps(original)
        def to_sharded(unit):
            was_sharded = unit.is_sharded
            original(unit)
            if not was_sharded:
                fields = {"params": self._params(unit), "engine": self._engine}
                self._session.emit("zparam.partition", fields)

        return to_sharded

    def _params(self, unit) -> list[str]:
        return [self._names.param(param.sharded_param) for param in unit.fsdp_params]

    def _alias_unsharded(self, unit) -> None:
        for param in unit.fsdp_params:  # autograd accumulates into these
            name = self._names.known_param(param.sharded_param)
            if name is not None:
                self._names.alias(param.unsharded_param, name)

    def _module(self, unit) -> str:
        modules = getattr(unit, "modules", None) or getattr(unit, "_modules", None) or ()
        if not modules and getattr(unit, "_module", None) is not None:
            modules = (unit._module,)
        return ",".join(self._names.module_word(module) for module in modules)


def _load(name: str) -> Any:
    for package in _PACKAGES:
        module = sys.modules.get(f"{package}.{name}")
        if module is not None:
            return module
    return None
