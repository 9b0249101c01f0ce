"""DeepSpeed's optimizer of stages 1 and 2: its calls and its buckets."""

from __future__ import annotations

import sys
from typing import Any

from .calls import CallWatch
from .names import NameBook, dtype_word
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

    def install(self, watch: CallWatch) -> None:
        """Replaces the methods, if the module has been imported."""
        module = sys.modules.get("deepspeed.runtime.zero.stage_1_and_2")
        if module is None:
            return
        owner = module.DeepSpeedZeroOptimizer
        for name in METHODS:
            watch.bracket(owner, name, f"z12.{name.lstrip('_')}", self._engine)
        watch.bracket(owner, "copy_grads_in_partition", "z12.copy_grads_in_partition", self._param)
        watch.bracket(owner, "average_tensor", "z12.average_tensor", self._tensor)
        add = "reduce_independent_p_g_buckets_and_remove_grads"
        watch.around(owner, add, after=self._added)
        watch.around(owner, "reduce_ipg_grads", before=self._flushes)

    def _engine(self, optimizer, *_args, **_kwargs) -> dict[str, Any]:
        return {"engine": self._engine_of(optimizer)}

    def _param(self, optimizer, param) -> dict[str, Any]:
        return {"engine": self._engine_of(optimizer), "param": self._names.param(param)}

    def _tensor(self, optimizer, tensor, *_args, **_kwargs) -> dict[str, Any]:
        return {"engine": self._engine_of(optimizer), "numel": tensor.numel()}

    def _added(self, _token, _result, optimizer, param, group_index) -> None:
        """After the call: a flush that it needed came first. A tile that waits adds nothing."""
        for dtype, bucket in optimizer.ipg_buckets.items():
            if bucket.params and bucket.params[-1][2] == optimizer.get_param_id(param):
                fields = {
                    "param": self._names.param(param),
                    "numel": param.numel(),
                    "dtype": dtype_word(dtype),
                    "engine": self._engine_of(optimizer),
                }
                self._session.emit("bucket.add", fields)
                return

    def _flushes(self, optimizer, comm_dtype=None) -> None:
        for dtype, bucket in optimizer.ipg_buckets.items():
            if not bucket.params or comm_dtype not in (None, dtype):
                continue
            groups = optimizer.bit16_groups
            params = [self._names.param(groups[group][index]) for group, index, _ in bucket.params]
            fields = {
                "dtype": dtype_word(dtype),
                "params": params,
                "numel": bucket.elements,
                "engine": self._engine_of(optimizer),
            }
            self._session.emit("bucket.flush", fields)
