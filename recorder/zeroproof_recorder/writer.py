"""From the spool to the file: used by the recording itself, and by the guardian after a crash."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from .encoder import Encoder, Record, line
from .trace_file import TraceFile


class TraceWriter:
    """Encodes records and appends them. Another process can take up its state."""

    def __init__(self, state: Optional[dict[str, Any]] = None):
        state = state or {"events": 0, "records": 0, "size": 0, "path": None}
        self._encoder = Encoder(state["events"], state["records"])
        self._file: Optional[TraceFile] = None
        if state["path"] is not None:
            self._file = TraceFile.take_up(Path(state["path"]), state["size"])

    @property
    def path(self) -> Optional[Path]:
        """The file, once there is one."""
        return self._file.path if self._file else None

    @property
    def events(self) -> int:
        """How many events have been written."""
        return self._encoder.events

    def state(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "events": self._encoder.events,
            "records": self._encoder.records,
            "size": self._file.size if self._file else 0,
            "path": str(self._file.path) if self._file else None,
        }

    def write(self, records: Sequence[Record], begin: dict[str, Any]) -> None:
        """Appends these records; `begin` has the path and the header if there is no file yet."""
        lines = self._encoder.lines(records, begin["header"]["rank"])
        if self._file is None:
            if not lines:
                return
            self._file = TraceFile(Path(begin["path"]))
            lines = line(begin["header"]) + lines
        self._file.append(lines)

    def end(self) -> None:
        """The file is complete."""
        if self._file is not None:
            self._file.append(self._encoder.end_line())
            self.close()

    def close(self) -> None:
        """Brings the file to the disk as it is."""
        if self._file is not None:
            self._file.close()


def absolute(path: Path) -> str:
    """A path that stays right when the script changes its folder."""
    return os.path.abspath(path)
