"""Hashes and norms of parameters and gradients around each recorded step: ``--numbers``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Optional

import torch

from .encoder import plain
from .fingerprints import Fingerprints, Value
from .names import NameBook
from .session import Session

GradOf = Callable[[torch.Tensor], Optional[torch.Tensor]]


@dataclass(frozen=True)
class _Waiting:
    """One record whose values have not been fetched."""

    facts: dict[str, Any]
    has_grads: bool

    @property
    def size(self) -> int:
        """How many values are its own."""
        return len(self.facts["params"]) * (2 if self.has_grads else 1)


class Numbers:
    """Takes numbers before and after steps.

    The parameters after a step are fetched together with the gradients before the next one: that
    is one copy a step, and one time that the host waits for the device.
    """

    def __init__(self, session: Session, names: NameBook):
        self._session = session
        self._names = names
        self._waiting: list[_Waiting] = []
        self._values = Fingerprints()

    def before_step(self, facts: dict[str, Any], params, grad_of: Optional[GradOf]) -> None:
        """Gradients and parameters that the step begins with; no gradients: they come later."""
        self._take({"when": "before_step", **facts}, params, grad_of)
        self.write()

    def after_step(self, facts: dict[str, Any], params, grad_of: Optional[GradOf]) -> None:
        """Parameters that the step leaves, and the gradients that its closure computed."""
        self._take({"when": "after_step", **facts}, params, grad_of)

    def write(self) -> None:
        """Fetches and writes what was taken."""
        waiting, self._waiting = self._waiting, []
        values, self._values = self._values, Fingerprints()
        fetched = iter(values.fetch())
        for one in waiting:
            record = _record(one, list(itertools.islice(fetched, one.size)))
            self._session.add(plain(record))

    def _take(self, facts: dict[str, Any], params: Iterable[torch.Tensor], grad_of) -> None:
        if _is_capturing():
            return
        known = [(self._names.known_param(param), param) for param in params]
        pairs = [(name, param) for name, param in known if name is not None]
        tensors = [held(param) for _, param in pairs]
        if grad_of is not None:
            tensors += [grad_of(param) for _, param in pairs]
        self._values.add(tensors)
        facts = {**facts, "params": [name for name, _ in pairs]}
        if getattr(grad_of, "gives_parts", False):
            facts["partial_grads"] = True
        self._waiting.append(_Waiting(facts, grad_of is not None))


def held(param: torch.Tensor) -> Optional[torch.Tensor]:
    """What this rank holds of a parameter: of ZeRO-3 its part, unless that lies on a disk."""
    part = getattr(param, "ds_tensor", None)
    if part is None:
        return param
    status = getattr(getattr(part, "status", None), "name", "AVAILABLE")
    return without_padding(param, part) if status == "AVAILABLE" else None


def without_padding(param: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    """A rank's part without the padding after the last element, which holds anything."""
    group = getattr(param, "ds_process_group", None)
    if group is None or not hasattr(param, "ds_numel"):
        return part
    left = param.ds_numel - torch.distributed.get_rank(group) * part.numel()
    return part.reshape(-1)[: max(left, 0)] if left < part.numel() else part


def plain_grad(param: torch.Tensor) -> Optional[torch.Tensor]:
    """The gradient of a parameter as PyTorch keeps it."""
    return param.grad


class EngineGrads:
    """The gradients of DeepSpeed's optimizers as they lie on this rank: no collective is called.

    Stages 1 and 2 keep the part of this rank in the parameter's mapping, stage 3 by sub-group,
    BF16_Optimizer the whole gradient beside the parameter.
    """

    def __init__(self, optimizer: Any):
        self._averaged: dict[int, torch.Tensor] = {}
        averaged = getattr(optimizer, "averaged_gradients", None)
        self.gives_parts = averaged is not None
        if averaged and not hasattr(optimizer, "bit16_groups"):  # stage 3
            for number, group in enumerate(optimizer.fp16_groups):
                pairs = zip(group, averaged.get(number) or ())
                self._averaged.update(
                    (id(param), without_padding(param, grad)) for param, grad in pairs
                )

    def __call__(self, param: torch.Tensor) -> Optional[torch.Tensor]:
        for name in ("_hp_grad", "grad"):
            whole = getattr(param, name, None)
            if whole is not None:
                return whole
        part = self._averaged.get(id(param))
        return part if part is not None else _mapped_grad(param)


def _mapped_grad(param: torch.Tensor) -> Optional[torch.Tensor]:
    mapping = getattr(param, "_hp_mapping", None)
    if mapping is None:
        return None
    try:
        return mapping.get_lp_grad_fragment(param._index_in_param_group)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # there is none now
        return None


def _record(one: _Waiting, values: list[Value]) -> dict[str, Any]:
    names = one.facts["params"]
    params, grads = values[: len(names)], values[len(names) :]
    bad = {name for name, value in zip(names * 2, values) if _is_bad(value[1])}
    record = {"rec": "numbers", **one.facts}
    if one.has_grads:
        record["grad_hash"] = [bits for bits, _ in grads]
        record["grad_norm"] = [norm for _, norm in grads]
    record["param_hash"] = [bits for bits, _ in params]
    record["param_norm"] = [norm for _, norm in params]
    record["bad"] = [name for name in names if name in bad]
    return record


def _is_bad(norm: Optional[float]) -> bool:
    return norm is not None and not math.isfinite(norm)


def _is_capturing() -> bool:
    """A copy to the host cannot become a part of a CUDA graph."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
