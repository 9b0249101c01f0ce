"""What is recorded, and where it goes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path

from .errors import RecorderError
from .steps import StepSelection

DEFAULT_FOLDER = "zeroproof-trace"
DEFAULT_BUFFER_MB = 32


class Detail(enum.IntEnum):
    """How much is recorded; each level holds those before it."""

    HOOKS = 0  # gradient hooks, graph tasks, final callbacks, collectives, optimizer steps
    ENGINE = 1  # modules, checkpoints, DDP buckets, FSDP2 units, DeepSpeed's engine and manager
    FULL = 2  # autograd graphs with the executed node order, transforms, autocast, manager states

    @classmethod
    def of(cls, word: str | int | Detail) -> Detail:
        """The level that a word stands for."""
        if isinstance(word, int):
            return cls(word)
        try:
            return cls[word.upper()]
        except KeyError:
            levels = ", ".join(level.name.lower() for level in cls)
            raise RecorderError(f"detail {word!r}: choose one of {levels}") from None


@dataclass(frozen=True)
class Options:
    """Everything a recording is asked to do."""

    out: Path = Path(DEFAULT_FOLDER)
    program: str = "job"
    steps: StepSelection = field(default_factory=lambda: StepSelection.of(None))
    detail: Detail = Detail.ENGINE
    buffer_mb: int = DEFAULT_BUFFER_MB
    is_quiet: bool = False
    has_numbers: bool = False  # hashes and norms of parameters and gradients around each step

    def __post_init__(self):
        if not 1 <= self.buffer_mb <= 2048:
            raise RecorderError(
                f"a buffer of {self.buffer_mb} MB: 1 to 2048, {DEFAULT_BUFFER_MB} if not given"
            )
