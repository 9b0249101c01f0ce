"""Runs a script in this process, recorded."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from .errors import RecorderError
from .options import Detail, Options
from .place import program_name
from .steps import StepSelection


def launch(options: argparse.Namespace) -> int:
    """As ``python SCRIPT ...`` would run it; its exit code is the script's."""
    try:
        from .recorder import Recorder
    except ImportError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        raise RecorderError(f"this Python ({sys.executable}) has no PyTorch") from error
    if not options.module and not Path(options.script).is_file():
        raise RecorderError(f"{options.script}: no such script; -m is for the names of modules")
    recording = Recorder(_options(options), finds_models=True)
    sys.argv = [options.script, *options.arguments]
    recording.start()
    try:
        _run(options)
    except SystemExit:
        raise
    except BaseException as error:
        recording.note_failure(error)
        if not isinstance(error, Exception):
            raise
        error = error.with_traceback(_frames_of_script(error))
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        recording.stop()
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.module:
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        return
    sys.path[0] = str(Path(options.script).resolve().parent)
    runpy.run_path(options.script, run_name="__main__")


def _options(options: argparse.Namespace) -> Options:
    name = options.program or options.script
    if options.module and not options.program:
        name = options.script.rsplit(".", 1)[-1]
    return Options(
        out=options.out,
        program=program_name(name),
        steps=StepSelection.of(options.steps),
        detail=Detail.of(options.detail),
        buffer_mb=options.buffer_mb,
        is_quiet=options.quiet,
    )


def _frames_of_script(error: BaseException):
    """The traceback as it would be without us."""
    frames = error.__traceback__
    ours = {__file__, runpy.__file__, "<frozen runpy>"}
    while frames is not None and frames.tb_frame.f_code.co_filename in ours:
        frames = frames.tb_next
    return frames
