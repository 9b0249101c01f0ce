"""The conformance programs on the installed PyTorch, as items of a digest."""

import json
import subprocess
import sys
from pathlib import Path

from trace_items import order_items, read_records

RECORDER = Path(__file__).resolve().parents[1]
ENDINGS = "endings.txt"


def record(out, _zeroproof):
    """Records all programs in a process of their own; how each ended is in endings.txt."""
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-W", "ignore", "-m", "programs.record", str(out.resolve())]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    ended = subprocess.run(command, cwd=RECORDER, **pipes)
    (out / ENDINGS).write_text(ended.stdout)
    print(f"programs: {len(ended.stdout.splitlines())}", file=sys.stderr, flush=True)


def read(digest, out, zeroproof):
    """What endings and traces say, and `zeroproof conform`."""
    for line in (out / ENDINGS).read_text().splitlines():
        name, _, ending = line.partition(" ")
        digest.add("programs.ending", name, ending)
    for path in sorted(out.glob("*.jsonl.gz")):
        events = [record for record in read_records(path) if record["rec"] == "ev"]
        for label, text in order_items("", events):
            digest.add("programs.order", f"{path.name.split('.')[0]}{label}", text)
    if zeroproof:
        _conform(digest, out, zeroproof)


def _conform(digest, out, zeroproof):
    command = [zeroproof, "conform", str(out), "--json", "--progress", "none"]
    ended = subprocess.run(command, capture_output=True, text=True)
    try:
        document = json.loads(ended.stdout)
    except ValueError:
        digest.add("programs.conform", "all", f"exit {ended.returncode}: {ended.stderr[-200:]}")
        return
    for one in document["programs"]:
        detail = f": {one['detail']}" if one["status"] != "agreed" else ""
        digest.add("programs.conform", one["program"], one["status"] + detail)
