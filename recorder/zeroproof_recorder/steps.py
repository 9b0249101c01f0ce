"""Which optimizer steps are recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Optional, Union

from .errors import RecorderError

StepsLike = Union[None, int, str, range, "StepSelection", Iterable[int]]

_PART = re.compile(r"^\s*(\d*)\s*(?:(:)\s*(\d*)\s*(?::\s*(\d+)\s*)?)?$")


class StepSelection:
    """A set of step numbers, kept as ranges; step n begins when n steps are complete.

    Words are those of Python's slices: ``10:12`` is 10 and 11, ``10:`` all from 10 on, ``:3`` the
    first three, ``0:100:10`` every tenth; parts are joined by commas.
    """

    def __init__(self, ranges: Iterable[tuple[int, Optional[int], int]]):
        self._ranges = tuple(ranges)

    @classmethod
    def of(cls, steps: StepsLike) -> StepSelection:
        """The selection that a number, a range, a list of numbers or words stand for; None: all."""
        if steps is None:
            return cls([(0, None, 1)])
        if isinstance(steps, StepSelection):
            return steps
        if isinstance(steps, str):
            return cls(_parse_part(part, steps) for part in steps.split(","))
        if isinstance(steps, int) and not isinstance(steps, bool):
            return cls([_checked(steps, steps + 1, 1, str(steps))])
        if isinstance(steps, range):
            return cls([_checked(steps.start, steps.stop, steps.step, repr(steps))])
        try:
            numbers = sorted({int(step) for step in steps})
        except (TypeError, ValueError):
            raise RecorderError(
                f"steps={steps!r}: give a range, a number, a list of numbers or words like '10:12'"
            ) from None
        return cls(_checked(n, n + 1, 1, str(n)) for n in numbers)

    def holds(self, step: int) -> bool:
        """Whether this step is recorded."""
        return any(
            first <= step and (last is None or step < last) and (step - first) % stride == 0
            for first, last, stride in self._ranges
        )

    def is_over(self, step: int) -> bool:
        """Whether neither this step nor any later one is recorded."""
        return all(last is not None and step >= last for _, last, _ in self._ranges)

    def __str__(self) -> str:
        return ",".join(
            f"{first}:{'' if last is None else last}{'' if stride == 1 else f':{stride}'}"
            for first, last, stride in self._ranges
        )


def _checked(first: int, last: Optional[int], stride: int, words: str):
    if first < 0 or stride < 1 or (last is not None and last <= first):
        raise RecorderError(f"steps {words}: empty or negative; 10:12 records steps 10 and 11")
    return (first, last, stride)


def _parse_part(part: str, words: str):
    match = _PART.match(part)
    if not match or not part.strip():
        raise RecorderError(
            f"steps {words!r}: not understood; examples: 10   10:12   10:   0:100:10"
        )
    first, colon, last, stride = match.groups()
    if not colon:
        return _checked(int(first), int(first) + 1, 1, words)
    return _checked(int(first or 0), int(last) if last else None, int(stride or 1), words)
