"""A small process that waits for the recorded one to die, and then writes the rest of its events.

It needs no PyTorch. Without it, `python -m zeroproof_recorder recover DIR` does the same later.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Optional

from .spool import unpacked
from .writer import TraceWriter

_POLL_S = 1.0
_DIED = "the process ended without closing its recording; this is what it had recorded by then"


class Guardian:
    """The recorded process's side: a child whose standard input ends when we do."""

    def __init__(self, spool: Path):
        package = str(Path(__file__).resolve().parent.parent)
        code = (
            f"import sys; sys.path.insert(0, {package!r}); "
            "from zeroproof_recorder.guardian import main; main()"
        )
        self._child = subprocess.Popen(
            [sys.executable, "-S", "-c", code, str(spool), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """The spool is gone: the guardian has no more work."""
        self._child.stdin.close()
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def forget(self) -> None:
        """In a forked child, whose copy of the pipe would keep it open."""
        os.close(self._child.stdin.fileno())


def main() -> None:
    """The child's side."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    spool, parent = Path(sys.argv[1]), int(sys.argv[2])
    while os.getppid() == parent:
        if select.select([sys.stdin], [], [], _POLL_S)[0]:
            break
    recovered = recover(spool) if spool.exists() else None
    if recovered is not None:
        print(
            f"zeroproof-recorder: process {parent} died; what it had recorded is in {recovered}",
            file=sys.stderr,
            flush=True,
        )


def recover(spool: Path) -> Optional[Path]:
    """Writes a spool out and removes it; the file that now has everything, or None."""
    records = list(unpacked(spool.read_bytes()))
    bases = [record["base"] for record in records if isinstance(record, dict) and "base" in record]
    if not bases:
        spool.unlink(missing_ok=True)
        return None
    records = [r for r in records if not (isinstance(r, dict) and "base" in r)]
    writer = TraceWriter(bases[0]["writer"])
    if records:
        records.append({"rec": "note", "text": _DIED})
        writer.write(records, bases[-1]["begin"])
    writer.close()
    spool.unlink(missing_ok=True)
    return writer.path
