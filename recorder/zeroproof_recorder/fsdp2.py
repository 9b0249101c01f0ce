"""FSDP2 (fully_shard): units, their gathers, and the final callback of the root."""

from __future__ import annotations

import sys
from typing import Any, Optional

from .brackets import CallWatch
from .calls import Call
from .names import NameBook
from .patches import PatchBook
from .session import Session

# Where PyTorch keeps it: since 2.6, and before.
_PACKAGES = ("torch.distributed.fsdp._fully_shard", "torch.distributed._composable.fsdp")
_MOMENTS = ("pre_forward", "post_forward", "pre_backward", "post_backward")
_FINAL = "_root_post_backward_final_callback"


def is_sharded(model) -> bool:
    """Whether fully_shard has been called on a model or on something in it."""
    state = _load("_fsdp_state")
    of = getattr(state, "_get_module_fsdp_state", None)
    if of is None:
        return any(type(module).__name__.startswith("FSDP") for module in model.modules())
    return any(of(module) is not None for module in model.modules())


class Fsdp2Units:
    """A unit is what one fully_shard call gathers together.

    Units without a parameter that has a name belong to models that are not recorded.
    """

    def __init__(self, session: Session, names: NameBook):
        self._session = session
        self._names = names

    def install(self, patches: PatchBook) -> None:
        """Replaces methods of FSDP2's classes, of all models of the process."""
        group = getattr(_load("_fsdp_param_group"), "FSDPParamGroup", None)
        state = getattr(_load("_fsdp_state"), "FSDPState", None)
        watch = CallWatch(self._session, patches, "fsdp2")
        for method in _MOMENTS:
            watch.bracket(group, method, f"fsdp2.{method}", self._unit)
        watch.bracket(state, _FINAL, "fsdp2.final_callback", self._unit)
        begins, ends = ("zparam.gather_begin",), ("zparam.gather_end",)
        watch.around(group, "unshard", begins, before=self._unshards)
        watch.around(group, "wait_for_unshard", ends, self._is_gathering, self._has_gathered)
        reshards = (self._was_sharded, self._has_resharded)
        watch.around(group, "_to_sharded", ("zparam.partition",), *reshards)

    def _unit(self, call: Call) -> Optional[dict[str, Any]]:
        known = self._known(call.subject)
        if not known:
            return None
        engine = self._names.engine_of(known[0])
        return {"engine": engine, "module": self._module(call.subject)}

    def _unshards(self, call: Call) -> None:
        unit = call.subject
        if not unit.is_unsharded and unit._all_gather_result is None:
            forward = "FORWARD" in str(unit._training_state)
            self._emit("zparam.gather_begin", unit, forward=forward)

    def _is_gathering(self, call: Call) -> None:
        call.token = bool(call.subject._all_gather_result)

    def _has_gathered(self, call: Call) -> None:
        if call.token:
            self._alias_unsharded(call.subject)
            self._emit("zparam.gather_end", call.subject)

    def _was_sharded(self, call: Call) -> None:
        call.token = bool(call.subject.is_sharded)

    def _has_resharded(self, call: Call) -> None:
        if call.token is False:
            self._emit("zparam.partition", call.subject)

    def _emit(self, kind: str, unit: Any, **more: Any) -> None:
        known = self._known(unit)
        if known:
            params = [self._names.param(param) for param in known]
            engine = self._names.engine_of(known[0])
            self._session.emit(kind, {"params": params, **more, "engine": engine})

    def _known(self, unit: Any) -> list[Any]:
        """The named parameters of a unit, or of a root's state, which may hold several."""
        groups = [unit] if hasattr(unit, "fsdp_params") else _groups(unit)
        params = [param.sharded_param for group in groups for param in group.fsdp_params]
        return [param for param in params if self._names.known_param(param) is not None]

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


def _groups(state: Any) -> list[Any]:
    """The parameter groups of a state and of those below it."""
    context = getattr(state, "_state_ctx", None)
    found = []
    for one in getattr(context, "all_states", None) or [state]:
        several = getattr(one, "_fsdp_param_groups", None)
        single = getattr(one, "_fsdp_param_group", None)
        found += several if several else [single] if single is not None else []
    return found


def _load(name: str) -> Any:
    for package in _PACKAGES:
        module = sys.modules.get(f"{package}.{name}")
        if module is not None:
            return module
    return None
