"""Hazards on the installed DeepSpeed, as items of a digest."""

import os
import subprocess
import sys
from pathlib import Path

from table import parse_case

SCRIPT = Path(__file__).resolve().parents[1] / "hazards" / "cases.py"


def record(digest, out, zeroproof):
    """Runs recorder/hazards; a case is an item, its value the word and what was observed."""
    out.mkdir(parents=True, exist_ok=True)
    table = out / "hazards.txt"
    environment = dict(os.environ, ZP_ZEROPROOF=zeroproof)
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SCRIPT), "--table", str(table), "--write"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        for line in process.stdout:
            case = parse_case(line.rstrip("\n"))
            if case:
                value = f"{case.word}: observed {case.observed}; expected {case.expected}"
                digest.add("hazards.case", f"{case.hazard} ({case.case})", value)
                print(
                    f"hazard {case.hazard} {case.word} ({case.case})", file=sys.stderr, flush=True
                )
