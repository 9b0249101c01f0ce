"""What a training script calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional, Union

from torch import nn

from . import recorder as _recorder
from .deepspeed_engine import is_engine
from .errors import RecorderError
from .options import DEFAULT_BUFFER_MB, DEFAULT_FOLDER, Detail, Options
from .place import program_name
from .recorder import Recorder
from .steps import StepSelection, StepsLike


@contextmanager
def record(
    model: Optional[nn.Module] = None,
    *,
    engine: Any = None,
    out: Union[str, os.PathLike] = DEFAULT_FOLDER,
    steps: StepsLike = None,
    detail: Union[str, Detail] = Detail.ENGINE,
    program: Optional[str] = None,
    buffer_mb: int = DEFAULT_BUFFER_MB,
    quiet: bool = False,
    numbers: bool = False,
) -> Iterator[Recorder]:
    """Records what happens in the block, in one file a rank under `out`.

    Args:
        model: the model, wrapped in DDP or sharded by fully_shard or not at all; more of them:
            ``recorder.add_model`` on what the block is given.
        engine: what deepspeed.initialize returned first, instead of a model.
        out: folder of the files; the same on all ranks.
        steps: optimizer steps to record, counted from the beginning of the block; None: all.
        detail: "hooks", "engine" or "full".
        program: first word of the file names; the script's name if None.
        buffer_mb: size of what is kept between two writes of the file.
        quiet: no line on stderr at the end.
        numbers: also a hash and the norm of each parameter and gradient around each step.

    Everything is taken away again when the block ends, however it ends.
    """
    _check(model, engine)
    options = Options(
        out=Path(out),
        program=program_name(program or sys.argv[0] or "job"),
        steps=StepSelection.of(steps),
        detail=Detail.of(detail),
        buffer_mb=buffer_mb,
        is_quiet=quiet,
        has_numbers=numbers,
    )
    recording = Recorder(options, finds_models=model is None and engine is None)
    for watched in (engine, model):
        if watched is not None and not (is_engine(engine) and watched is engine.module):
            recording.add_model(watched)
    recording.start()
    try:
        yield recording
    except GeneratorExit:  # a block that was entered by hand, and forgotten
        raise
    except BaseException as error:
        recording.note_failure(error)
        raise
    finally:
        recording.stop()


def mark(label: str) -> None:
    """Leaves a word of your own in the trace; a no-op while no step is recorded."""
    if _recorder._active is not None:
        _recorder._active.session.emit("mark", {"label": str(label)})


def _check(model: Any, engine: Any) -> None:
    if model is not None and not isinstance(model, nn.Module):
        raise RecorderError(f"model is a {type(model).__name__}: give an nn.Module")
    if is_engine(model) and engine is None:
        raise RecorderError("model is a DeepSpeed engine: give it as engine=, without a model")
    if engine is not None and not is_engine(engine):
        raise RecorderError(
            f"engine is a {type(engine).__name__}: give what deepspeed.initialize returned first; "
            "models of DDP and FSDP2 are given as model"
        )
