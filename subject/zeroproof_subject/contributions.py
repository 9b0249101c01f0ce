"""The data of a program: small whole numbers, so that sums of gradients are exact in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

# The largest number, by the dtype of parameters. Products of two of them, summed over all ranks and
# micro-batches, have no more bits than the dtype.
MOST = {"fp32": 15, "fp16": 7, "bf16": 3}


@dataclass(frozen=True)
class Contributions:
    """What one forward on one rank multiplies weights with. A recomputed forward gets the same."""

    seed: int
    engine: str
    forward: int  # the number of the engine's forwards before it
    rank: int
    skips: frozenset[str] = frozenset()  # modules that do not run
    most: int = MOST["fp32"]
    expert: int = 0  # which of the experts runs
    # Called with the name and the output of each module that ran, also when it is recomputed.
    watch: Callable[[str, Any], None] | None = field(default=None, compare=False)

    def numbers(self, module: str, count: int) -> list[float]:
        """So many numbers of a module, all from 1 to `most`; each its own."""
        place = f"{self.seed}/{self.engine}/{self.forward}/{self.rank}/{module}/"
        return [float(1 + crc32(f"{place}{at}".encode()) % self.most) for at in range(count)]


def first_weights(parameter: str, count: int) -> list[float]:
    """The first value of each element of a parameter: multiples of 1/8 between -1 and 1."""
    return [(crc32(f"{parameter}/{at}".encode()) % 17 - 8) / 8 for at in range(count)]
