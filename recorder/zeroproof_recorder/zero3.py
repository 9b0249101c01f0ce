"""DeepSpeed's stage 3: buckets, fetches, gathers and partitions of parameters."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from .brackets import CallWatch
from .calls import Call
from .names import NameBook, dtype_word
from .patches import PatchBook
from .session import Session

OPTIMIZER_METHODS = (
    "independent_gradient_partition_epilogue",
    "clear_backward_seen_flag",
    "backward_prologue",
    "backward_epilogue",
    "_partition_all_parameters",
    "_post_step",
    "_pre_step",
    "step",
    "zero_grad",
)
COORDINATOR_METHODS = (
    "reset_step",
    "_invalidate_trace",
    "release_backward_leftovers",
    "release_and_reset_all",
)
MODULE_MOMENTS = ("pre_forward", "post_forward", "pre_backward", "post_backward")
GATHER = ("zparam.gather_begin", "zparam.gather_end")
# Handles of gathers, and where each keeps its parameters.
HANDLES = (
    ("AllGatherHandle", "_AllGatherHandle__param"),
    ("AllGatherCoalescedHandle", "params"),
    ("NoGatherHandle", "_NoGatherHandle__param"),
    ("NoGatherCoalescedHandle", "_NoGatherCoalescedHandle__params"),
)


class Zero3:
    """Watches the optimizer, the parameter coordinator and the parameters of stage 3."""

    def __init__(self, session: Session, names: NameBook, engine_of, engines: list[Any]):
        self._session = session
        self._names = names
        self._engine_of = engine_of
        self._engines = engines
        self._gathered: dict[str, int] = {}  # name -> elements
        self._live_numel = -1  # not counted yet
        self._waited: weakref.WeakSet[Any] = weakref.WeakSet()

    def install(self, patches: PatchBook) -> None:
        """Replaces the methods of whatever has been imported."""
        stage3 = sys.modules.get("deepspeed.runtime.zero.stage3")
        if stage3 is None:
            return
        watch = CallWatch(self._session, patches, "zero3")
        self._watch_optimizer(watch, stage3.DeepSpeedZeroOptimizer_Stage3)
        coordinator = sys.modules["deepspeed.runtime.zero.partitioned_param_coordinator"]
        self._watch_coordinator(watch, coordinator.PartitionedParameterCoordinator)
        offload = sys.modules["deepspeed.runtime.zero.parameter_offload"].DeepSpeedZeRoOffload
        for moment in MODULE_MOMENTS:
            when, what = moment.split("_")
            name = f"{when}_sub_module_{what}_function"
            watch.bracket(offload, name, f"z3.{moment}", self._module)
        self._watch_parameters(watch, sys.modules["deepspeed.runtime.zero.partition_parameters"])

    # ---- the optimizer -----------------------------------------------------------------------

    def _watch_optimizer(self, watch: CallWatch, owner: type) -> None:
        for name in OPTIMIZER_METHODS:
            watch.bracket(owner, name, f"z3.{name.lstrip('_')}", self._engine)
        watch.bracket(owner, "partition_grads", "z3.partition_grads", self._partitioned_grads)
        private = "_DeepSpeedZeroOptimizer_Stage3"
        add, flush = "__add_grad_to_ipg_bucket", "__reduce_and_partition_ipg_grads"
        watch.around(owner, private + add, ("bucket.add",), returned=self._added)
        watch.around(owner, private + flush, ("bucket.flush",), before=self._flushes)

    def _engine(self, call: Call) -> dict[str, Any]:
        return {"engine": self._engine_of(call.subject)}

    def _partitioned_grads(self, call: Call) -> dict[str, Any]:
        return {
            **self._engine(call),
            "params": self._names_of(call.argument("params_to_release", "params", place=1) or ()),
            "index": call.subject.micro_step_id,
        }

    def _added(self, call: Call) -> None:
        param = call.argument("param", place=1)
        fields = {
            "param": self._names.param(param),
            "numel": param.ds_numel,
            "dtype": dtype_word(call.subject.get_param_comm_dtype(param)),
            **self._engine(call),
        }
        self._session.emit("bucket.add", fields)

    def _flushes(self, call: Call) -> None:
        dtype = call.argument("communication_data_type", "dtype", place=1)
        bucket = call.subject.ipg_buckets[dtype]
        if bucket.params:
            fields = {
                "dtype": dtype_word(dtype),
                "params": self._names_of(bucket.params),
                "numel": bucket.elements,
                **self._engine(call),
            }
            self._session.emit("bucket.flush", fields)

    # ---- the coordinator ---------------------------------------------------------------------

    def _watch_coordinator(self, watch: CallWatch, owner: type) -> None:
        for name in COORDINATOR_METHODS:
            watch.bracket(owner, name, f"coord.{name.lstrip('_')}", self._trace)
        watch.around(owner, "fetch_sub_module", ("zmod.fetch",), before=self._fetches)
        watch.around(owner, "release_sub_module", ("zmod.release",), before=self._releases)
        gather = "_PartitionedParameterCoordinator__all_gather_params_"
        watch.around(owner, gather, ("zparam.gather_begin",), before=self._gathers)

    def _trace(self, call: Call) -> dict[str, Any]:
        mode = getattr(call.subject, "_PartitionedParameterCoordinator__trace_mode", None)
        return {**self._engine(call), "trace": getattr(mode, "name", None)}

    def _fetches(self, call: Call) -> None:
        self._session.emit("zmod.fetch", self._passes(call))

    def _releases(self, call: Call) -> None:
        self._session.emit("zmod.release", self._passes(call))

    def _passes(self, call: Call) -> dict[str, Any]:
        module = call.argument("current_submodule", "submodule", "module", place=1)
        return {
            "module": self._names.module_word(module),
            "forward": bool(call.argument("forward", place=2)),
            **self._trace(call),
            "step_id": getattr(call.subject, "_PartitionedParameterCoordinator__step_id", None),
        }

    def _gathers(self, call: Call) -> None:
        absent = _absent(call.argument("params", place=1) or ())
        absent.sort(key=lambda param: param.ds_id)
        is_forward = bool(call.argument("forward", place=2))
        fields = {"params": self._names_of(absent), "forward": is_forward}
        self._session.emit("zparam.gather_begin", {**fields, **self._engine(call)})

    # ---- modules and parameters --------------------------------------------------------------

    def _module(self, call: Call) -> dict[str, Any]:
        module = call.argument("sub_module", "module", place=1)
        return {**self._engine(call), "module": self._names.module_word(module)}

    def _watch_parameters(self, watch: CallWatch, parameters) -> None:
        for name, attribute in HANDLES:
            owner = getattr(parameters, name, None)
            if owner is not None:
                watch = CallWatch(self._session, watch.patches, f"zero3.{name}")
                is_first, waited = self._is_first_wait, self._has_waited(attribute)
                watch.around(owner, "wait", GATHER[1:], is_first, waited)
        init, watch = parameters.Init, CallWatch(self._session, watch.patches, "zero3.init")
        directly = (self._gathers_directly, self._gathered_directly)
        watch.around(init, "_all_gather", GATHER, *directly)
        watch.around(init, "_partition", ("zparam.partition",), returned=self._partitioned)

    def _is_first_wait(self, call: Call) -> None:
        """A coalesced handle is waited on once a parameter; the first wait completes it."""
        call.token = call.subject not in self._waited
        self._waited.add(call.subject)

    def _has_waited(self, attribute: str):
        def waited(call: Call) -> None:
            if call.token:
                found = getattr(call.subject, attribute)
                self._are_gathered(list(found) if _is_many(found) else [found])

        return waited

    def _gathers_directly(self, call: Call) -> None:
        absent = _absent(call.argument("param_list", "params", place=1) or ())
        if self._names_of(absent):
            fields = {"params": self._names_of(absent), "direct": True, **self._owner(absent)}
            self._session.emit("zparam.gather_begin", fields)

    def _gathered_directly(self, call: Call) -> None:
        if call.result is None:
            self._are_gathered(call.argument("param_list", "params", place=1) or ())

    def _are_gathered(self, params) -> None:
        self._count_live()
        for param in params:
            self._note_live(param, param.ds_status.name == "AVAILABLE")
        self._emit_live("zparam.gather_end", params)

    def _partitioned(self, call: Call) -> None:
        params = call.argument("param_list", "params", place=1) or ()
        self._count_live()
        for param in params:
            self._note_live(param, False)
        self._emit_live("zparam.partition", params)

    def _emit_live(self, kind: str, params) -> None:
        """Only of parameters that have names: others belong to models that are not recorded."""
        names = self._names_of(params)
        if names:
            fields = {"params": names, "live_numel": self._live_numel, **self._owner(params)}
            self._session.emit(kind, fields)

    def _owner(self, params) -> dict[str, Any]:
        known = [param for param in params if self._names.known_param(param) is not None]
        return {"engine": self._names.engine_of(known[0])}

    def _note_live(self, param, is_live: bool) -> None:
        name = self._names.known_param(param)
        if name is None or is_live == (name in self._gathered):
            return
        if is_live:
            self._gathered[name] = param.ds_numel
            self._live_numel += param.ds_numel
        else:
            self._live_numel -= self._gathered.pop(name)

    def _count_live(self) -> None:
        """Once; from then on gathers and partitions keep the sum."""
        if self._live_numel >= 0:
            return
        self._live_numel = 0
        for engine in self._engines:
            for param in engine.module.parameters():
                if getattr(getattr(param, "ds_status", None), "name", "") == "AVAILABLE":
                    self._note_live(param, True)

    def _names_of(self, params) -> list[str]:
        names = map(self._names.known_param, params)
        return [name for name in names if name is not None]


def _absent(params) -> list[Any]:
    return [param for param in params if param.ds_status.name == "NOT_AVAILABLE"]


def _is_many(found: Any) -> bool:
    return isinstance(found, (list, tuple, set, frozenset))
