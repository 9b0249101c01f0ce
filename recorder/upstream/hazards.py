"""Hazards on the installed DeepSpeed, as items of a digest."""

import os
import subprocess
import sys
from pathlib import Path

from table import parse_case, read_cases

SCRIPT = Path(__file__).resolve().parents[1] / "hazards" / "cases.py"
TABLE = "hazards.txt"


def record(out, zeroproof):
    """Runs recorder/hazards, and keeps its table."""
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-W", "ignore", str(SCRIPT), "--table", str(out / TABLE), "--write"]
    environment = dict(os.environ, ZP_ZEROPROOF=zeroproof)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        for case in filter(None, map(parse_case, map(str.rstrip, process.stdout))):
            print(f"{case.hazard} {case.word} ({case.case})", file=sys.stderr, flush=True)


def read(digest, out, _zeroproof):
    """A case is an item, its value the word and what was observed."""
    for case in read_cases(out / TABLE):
        value = f"{case.word}: observed {case.observed}; expected {case.expected}"
        digest.add("hazards.case", f"{case.hazard} ({case.case})", value)
