"""Runs a script in this process, recorded."""

from __future__ import annotations

import argparse
import builtins
import importlib.machinery
import io
import os
import runpy
import sys
import types
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Optional

from .errors import RecorderError
from .options import Detail, Options
from .place import program_name
from .steps import StepSelection

_RUNPY = (runpy.__file__, "<frozen runpy>")


def launch(options: argparse.Namespace) -> int:
    """As ``python SCRIPT ...`` would run it: its exit code, and what Python says of an error."""
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
    except SystemExit as error:
        recording.note_failure(error)
        raise
    except BaseException as error:
        recording.note_failure(error)
        recording.stop()
        _show_as_python_does(error, options.module)
        if isinstance(error, RecorderError):  # the script's own use of the recorder
            sys.excepthook(type(error), error, error.__traceback__)
            return 1
        raise
    finally:
        recording.stop()
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.module:
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        return
    sys.path[0] = str(Path(options.script).resolve().parent)
    if options.script.endswith(".pyc") or zipfile.is_zipfile(options.script):
        runpy.run_path(options.script, run_name="__main__")
        return
    _run_source(os.path.abspath(options.script))


def _run_source(path: str) -> None:
    """Python gives a script the whole path as __file__, and leaves sys.argv as it was given."""
    main = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    vars(main).update(__file__=path, __loader__=loader, __cached__=None, __builtins__=builtins)
    main.__annotations__ = {}
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    sys.modules["__main__"] = main
    exec(code, vars(main))


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
        has_numbers=options.numbers,
    )


def _show_as_python_does(error: BaseException, is_module: bool) -> None:
    """Python comes to show the error when all our callers are left: their frames go then."""
    shown = sys.excepthook

    def excepthook(kind, value, traceback):
        if value is error:
            traceback = _frames_of_script(traceback, is_module)
            value = value.with_traceback(traceback)
        shown(kind, value, traceback)

    sys.excepthook = excepthook


def _frames_of_script(
    traceback: Optional[TracebackType], is_module: bool
) -> Optional[TracebackType]:
    """Of ``python -m`` Python shows how runpy has run a module: that is how it ran us."""
    nodes = []
    while traceback is not None and _runs_script(traceback):
        nodes.append(traceback)
        traceback = traceback.tb_next
    runners = [node for node in nodes if node.tb_frame.f_code.co_filename in _RUNPY][:2]
    if not is_module or traceback is None or len(runners) < 2:
        return traceback
    runners[0].tb_next, runners[1].tb_next = runners[1], traceback
    return runners[0]


def _runs_script(node: TracebackType) -> bool:
    from .failures import is_ours

    return is_ours(node) or node.tb_frame.f_code.co_filename in _RUNPY
