"""What is recorded, and where it goes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path

from .errors import RecorderError
from .steps import StepSelection

DEFAULT_FOLDER = "zeroproof-trace"
DEFAULT_BUFFER_EVENTS = 200_000


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


class Flush(enum.Enum):
    """When events are encoded and written."""

    FULL = "full"  # when the buffer is full and at the end
    STEP = "step"  # also after every recorded step
    EVENT = "event"  # each event at once: for jobs that die without a word (segmentation fault)

    @classmethod
    def of(cls, word: str | Flush) -> Flush:
        """The rule that a word stands for."""
        try:
            return cls(word)
        except ValueError:
            rules = ", ".join(rule.value for rule in cls)
            raise RecorderError(f"flush {word!r}: choose one of {rules}") from None


@dataclass(frozen=True)
class Options:
    """Everything a recording is asked to do."""

    out: Path = Path(DEFAULT_FOLDER)
    program: str = "job"
    steps: StepSelection = field(default_factory=lambda: StepSelection.of(None))
    detail: Detail = Detail.ENGINE
    flush: Flush = Flush.FULL
    buffer_events: int = DEFAULT_BUFFER_EVENTS
    is_quiet: bool = False

    def __post_init__(self):
        if self.buffer_events < 1000:
            raise RecorderError(
                f"buffer of {self.buffer_events} events: at least 1000, default {DEFAULT_BUFFER_EVENTS}"
            )
