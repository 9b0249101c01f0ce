"""DistributedDataParallel: which bucket the reducer has launched, and with what in it."""

from __future__ import annotations

from typing import Any

import torch

from .names import NameBook
from .session import Session

# The reducer gives its buckets only as zeros of their size: not asked above this many elements.
MAX_MAPPED_NUMEL = 64 * 1024 * 1024
# Buckets are rebuilt once: before the second backward, with a static graph before the third.
MAPPED_BACKWARDS = 3


class DdpBuckets:
    """Emits bucket.ready just before the all-reduce by which the reducer launches a bucket."""

    def __init__(self, session: Session, names: NameBook, wrapper, engine: int):
        self._session = session
        self._names = names
        self._wrapper = wrapper
        self._engine = engine
        self._buckets: list[list[str]] = []
        self._backwards = 0
        self._next = 0

    def before_backward(self) -> None:
        """Outside of every graph task, where the reducer can be asked."""
        self._next = 0
        if not self._wrapper.require_backward_grad_sync:
            self._session.emit("mark", {"label": "ddp.no_sync", "engine": self._engine})
            return
        self._backwards += 1
        if self._backwards <= MAPPED_BACKWARDS:
            self._read_buckets()

    def on_reducer_call(self, args: tuple[Any, ...]) -> None:
        """C++ calls an all-reduce in a graph task; integers are DDP's map of used parameters."""
        tensors = args[0]
        if not tensors or not tensors[0].dtype.is_floating_point:
            return
        index, self._next = self._next, self._next + 1
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        fields = {"index": index, "bytes": size}
        if index < len(self._buckets):
            fields["params"] = self._buckets[index]
            fields["last"] = index + 1 == len(self._buckets)
        self._session.emit("bucket.ready", fields)

    def _read_buckets(self) -> None:
        params = [p for p in self._wrapper.module.parameters() if p.requires_grad]
        if sum(param.numel() for param in params) > MAX_MAPPED_NUMEL:
            return
        with torch.no_grad():
            buckets = self._wrapper.reducer._get_zeros_like_grad_buckets()
        self._buckets = [
            [self._names.param(param) for param in bucket.parameters()] for bucket in buckets
        ]
