"""DeepSpeed's optimizer of stages 1 and 2: its calls and its buckets."""

from __future__ import annotations

import sys
from typing import Any

from .brackets import CallWatch
from .calls import Call
from .names import NameBook, dtype_word
from .patches import PatchBook
from .session import Session

METHODS = (
    "process_gradients",
    "reduce_gradients",
    "independent_gradient_partition_epilogue",
    "overlapping_partition_gradients_reduce_epilogue",
    "clear_backward_seen_flag",
    "backward_epilogue",
    "_clear_param_grad_only",
    "finalize_gradient_accumulation_boundary",
    "update_lp_params",
    "step",
    "zero_grad",
)


class Zero12:
    """Watches DeepSpeedZeroOptimizer."""

    def __init__(self, session: Session, names: NameBook, engine_of):
        self._session = session
        self._names = names
        self._engine_of = engine_of

    def install(self, patches: PatchBook) -> None:
        """Replaces the methods, if the module has been imported."""
        module = sys.modules.get("deepspeed.runtime.zero.stage_1_and_2")
        if module is None:
            return
        watch = CallWatch(self._session, patches, "zero12")
        owner = module.DeepSpeedZeroOptimizer
        for name in METHODS:
            watch.bracket(owner, name, f"z12.{name.lstrip('_')}", self._engine)
        watch.bracket(owner, "copy_grads_in_partition", "z12.copy_grads_in_partition", self._param)
        watch.bracket(owner, "average_tensor", "z12.average_tensor", self._tensor)
        add = "reduce_independent_p_g_buckets_and_remove_grads"
        watch.around(owner, add, ("bucket.add",), returned=self._added)
        watch.around(owner, "reduce_ipg_grads", ("bucket.flush",), before=self._flushes)

    def _engine(self, call: Call) -> dict[str, Any]:
        return {"engine": self._engine_of(call.subject)}

    def _param(self, call: Call) -> dict[str, Any]:
        param = call.argument("param", place=1)
        return {**self._engine(call), "param": None if param is None else self._names.param(param)}

    def _tensor(self, call: Call) -> dict[str, Any]:
        tensor = call.argument("tensor", place=1)
        return {**self._engine(call), "numel": None if tensor is None else tensor.numel()}

    def _added(self, call: Call) -> None:
        """After the call: a flush that it needed came first. A tile that waits adds no gradient."""
        optimizer, param = call.subject, call.argument("param", place=1)
        for dtype, bucket in optimizer.ipg_buckets.items():
            if bucket.params and bucket.params[-1][2] == optimizer.get_param_id(param):
                fields = {
                    "param": self._names.param(param),
                    "numel": param.numel(),
                    "dtype": dtype_word(dtype),
                    **self._engine(call),
                }
                self._session.emit("bucket.add", fields)
                return

    def _flushes(self, call: Call) -> None:
        optimizer, wanted = call.subject, call.argument("comm_dtype", place=1)
        for dtype, bucket in optimizer.ipg_buckets.items():
            if not bucket.params or wanted not in (None, dtype):
                continue
            groups = optimizer.bit16_groups
            members = [groups[group][index] for group, index, _ in bucket.params]
            fields = {
                "dtype": dtype_word(dtype),
                "params": [self._names.param(param) for param in members],
                "numel": bucket.elements,
                **self._engine(call),
            }
            self._session.emit("bucket.flush", fields)
