"""The command line: run a script under the recorder, and check what was recorded."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from .errors import RecorderError
from .options import DEFAULT_BUFFER_MB, DEFAULT_FOLDER, Detail
from .version import VERSION

RANK_OPTIONS = ("--local_rank", "--local-rank")
EXAMPLES = """\
examples:
  python -m zeroproof_recorder run train.py --epochs 1
  python -m zeroproof_recorder run --steps 10:12 --out trace train.py
  torchrun --nproc_per_node 8 -m zeroproof_recorder run --steps 100: train.py
  deepspeed --module zeroproof_recorder run train.py --deepspeed ds_config.json
  python -m zeroproof_recorder run --detail full -m my_package.train
  python -m zeroproof_recorder check trace

then: zeroproof replay trace

exit codes: run: those of the script; 2 usage; check: 0 sound, 1 findings, 5 unreadable
"""


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs one command; its exit code."""
    parser = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    of_launcher = _taken_from_front(given)
    options = parser.parse_args(given)
    if options.command == "run":  # a launcher gives them to what it starts
        options.arguments = of_launcher + options.arguments
    try:
        if options.command == "check":
            from .checker import check_paths

            return check_paths(options.paths)
        if options.command == "recover":
            return _recover(options.folder)
        from .launch import launch

        return launch(options)
    except RecorderError as error:
        print(f"zeroproof-recorder: {error}", file=sys.stderr)
        return 2


def _taken_from_front(arguments: list[str]) -> list[str]:
    """What deepspeed and torch.distributed.launch put before the script's own arguments."""
    taken: list[str] = []
    while arguments and arguments[0].split("=")[0] in RANK_OPTIONS:
        count = 1 if "=" in arguments[0] else 2
        taken += arguments[:count]
        del arguments[:count]
    return taken


def _recover(folder: Path) -> int:
    from .guardian import recover

    spools = sorted(folder.glob(".*.spool"))
    for spool in spools:
        print(f"recovered {recover(spool) or 'no events'} from {spool.name}")
    if not spools:
        print(f"{folder}: no events to recover")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m zeroproof_recorder",
        description="Records the order of hooks, graph tasks and collectives of a training job.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"zeroproof-recorder {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(commands)
    check = commands.add_parser("check", help="say whether trace files are sound")
    check.add_argument("paths", nargs="+", type=Path, metavar="FILE", help="files or folders")
    recover = commands.add_parser(
        "recover", help="write the events of a job that was killed together with its guardian"
    )
    recover.add_argument("folder", type=Path, metavar="DIR", help="what --out was")
    return parser


def _add_run(commands) -> None:
    run = commands.add_parser(
        "run",
        help="run a script and record it",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument(
        "--out",
        type=Path,
        default=Path(DEFAULT_FOLDER),
        metavar="DIR",
        help=f"folder of the files, the same on all ranks (default {DEFAULT_FOLDER})",
    )
    run.add_argument(
        "--steps",
        metavar="A:B",
        help="optimizer steps to record, as in a slice: 10:12 is steps 10 and 11 (default: all)",
    )
    run.add_argument(
        "--detail",
        default="engine",
        choices=[level.name.lower() for level in Detail],
        help="hooks: gradient hooks, graph tasks, collectives, steps; engine: also modules, "
        "checkpoints, buckets and the engine's calls and states (default); full: also autograd "
        "graphs and the order of their nodes",
    )
    run.add_argument(
        "--buffer-mb",
        type=int,
        default=DEFAULT_BUFFER_MB,
        metavar="N",
        help=f"kept in memory between two writes of the file (default {DEFAULT_BUFFER_MB})",
    )
    run.add_argument(
        "--numbers",
        action="store_true",
        help="also a hash and the norm of each parameter and gradient around each step",
    )
    run.add_argument("--program", metavar="NAME", help="first word of file names (the script's)")
    run.add_argument("--quiet", action="store_true", help="no line at the end")
    run.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    run.add_argument("script", metavar="SCRIPT", help="what python would run")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
