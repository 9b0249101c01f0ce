"""DeepSpeed's stage 3: buckets, fetches, gathers and partitions of parameters."""

from __future__ import annotations

import sys
from typing import Any

from .calls import CallWatch
from .names import NameBook, dtype_word
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


class Zero3:
    """Watches the optimizer, the parameter coordinator and the parameters of stage 3."""

    def __init__(self, session: Session, names: NameBook, engine_of, engines: list[Any]):
        self._session = session
        self._names = names
        self._engine_of = engine_of
        self._engines = engines
        self._gathered: dict[str, int] = {}  # name -> elements
        self._live_numel = -1  # not counted yet

    def install(self, watch: CallWatch) -> None:
        """Replaces the methods of whatever has been imported."""
        stage3 = sys.modules.get("deepspeed.runtime.zero.stage3")
        if stage3 is None:
            return
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
        watch.around(owner, f"{private}__add_grad_to_ipg_bucket", after=self._added)
        watch.around(owner, f"{private}__reduce_and_partition_ipg_grads", before=self._flushes)

    def _engine(self, part, *_args, **_kwargs) -> dict[str, Any]:
        return {"engine": self._engine_of(part)}

    def _partitioned_grads(self, optimizer, params, *_args) -> dict[str, Any]:
        return {
            "engine": self._engine_of(optimizer),
            "params": self._names_of(params),
            "index": optimizer.micro_step_id,
        }

    def _added(self, _token, _result, optimizer, param) -> None:
        fields = {
            "param": self._names.param(param),
            "numel": param.ds_numel,
            "dtype": dtype_word(optimizer.get_param_comm_dtype(param)),
            "engine": self._engine_of(optimizer),
        }
        self._session.emit("bucket.add", fields)

    def _flushes(self, optimizer, dtype) -> None:
        bucket = optimizer.ipg_buckets[dtype]
        if bucket.params:
            fields = {
                "dtype": dtype_word(dtype),
                "params": self._names_of(bucket.params),
                "numel": bucket.elements,
                "engine": self._engine_of(optimizer),
            }
            self._session.emit("bucket.flush", fields)

    # ---- the coordinator ---------------------------------------------------------------------

    def _watch_coordinator(self, watch: CallWatch, owner: type) -> None:
        private = "_PartitionedParameterCoordinator"
        for name in COORDINATOR_METHODS:
            watch.bracket(owner, name, f"coord.{name.lstrip('_')}", self._trace)
        watch.around(owner, "fetch_sub_module", before=self._fetches)
        watch.around(owner, "release_sub_module", before=self._releases)
        watch.around(owner, f"{private}__all_gather_params_", before=self._gathers)

    def _trace(self, coordinator, *_args, **_kwargs) -> dict[str, Any]:
        mode = getattr(coordinator, "_PartitionedParameterCoordinator__trace_mode", None)
        return {"engine": self._engine_of(coordinator), "trace": getattr(mode, "name", None)}

    def _fetches(self, coordinator, module, forward) -> None:
        self._session.emit("zmod.fetch", self._passes(coordinator, module, forward))

    def _releases(self, coordinator, module, forward=False) -> None:
        self._session.emit("zmod.release", self._passes(coordinator, module, forward))

    def _passes(self, coordinator, module, forward) -> dict[str, Any]:
        return {
            "module": self._names.module_word(module),
            "forward": bool(forward),
            **self._trace(coordinator),
            "step_id": getattr(coordinator, "_PartitionedParameterCoordinator__step_id", None),
        }

    def _gathers(self, coordinator, params, forward, *_args, **_kwargs) -> None:
        absent = [p for p in params if p.ds_status.name == "NOT_AVAILABLE"]
        absent.sort(key=lambda param: param.ds_id)
        fields = {"params": self._names_of(absent), "forward": bool(forward)}
        self._session.emit("zparam.gather_begin", {**fields, **self._engine(coordinator)})

    # ---- modules and parameters --------------------------------------------------------------

    def _module(self, offload, module) -> dict[str, Any]:
        return {"engine": self._engine_of(offload), "module": self._names.module_word(module)}

    def _watch_parameters(self, watch: CallWatch, parameters) -> None:
        private = "_NoGatherCoalescedHandle__params"
        waits = (
            ("AllGatherHandle", lambda handle: [handle._AllGatherHandle__param]),
            ("AllGatherCoalescedHandle", lambda handle: handle.params),
            ("NoGatherHandle", lambda handle: [handle._NoGatherHandle__param]),
            ("NoGatherCoalescedHandle", lambda handle: getattr(handle, private)),
        )
        for name, params_of in waits:
            owner = getattr(parameters, name, None)
            if owner is not None:
                watch.around(owner, "wait", self._is_first_wait, self._waited(params_of))
        init = parameters.Init
        watch.around(init, "_all_gather", self._gathers_directly, self._gathered_directly)
        watch.around(init, "_partition", after=self._partitioned)

    def _is_first_wait(self, handle, *_args, **_kwargs) -> bool:
        """A coalesced handle is waited on once a parameter; the first wait completes it."""
        is_first = not getattr(handle, "_zeroproof_waited", False)
        handle._zeroproof_waited = True
        return is_first

    def _waited(self, params_of):
        def waited(is_first, _result, handle, *_args, **_kwargs):
            if is_first:
                self._are_gathered(params_of(handle))

        return waited

    def _gathers_directly(self, _init, params, *_args, **_kwargs) -> None:
        absent = [p for p in params if p.ds_status.name == "NOT_AVAILABLE"]
        if absent:
            fields = {"params": self._names_of(absent), "direct": True}
            self._session.emit("zparam.gather_begin", fields)

    def _gathered_directly(self, _token, handle, _init, params, *_args, **_kwargs) -> None:
        if handle is None:
            self._are_gathered(params)

    def _are_gathered(self, params) -> None:
        self._count_live()
        for param in params:
            self._note_live(param, param.ds_status.name == "AVAILABLE")
        names = self._names_of(params)
        if names:
            fields = {"params": names, "live_numel": self._live_numel}
            self._session.emit("zparam.gather_end", fields)

    def _partitioned(self, _token, _result, _init, params, *_args, **_kwargs) -> None:
        self._count_live()
        for param in params:
            self._note_live(param, False)
        fields = {"params": self._names_of(params), "live_numel": self._live_numel}
        self._session.emit("zparam.partition", fields)

    def _note_live(self, param, is_live: bool) -> None:
        name = self._names.param(param)
        if is_live == (name in self._gathered):
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
        return [self._names.param(param) for param in params]
