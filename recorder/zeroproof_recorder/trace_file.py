"""A gzip file that can be read at any moment."""

from __future__ import annotations

import gzip
import os
from pathlib import Path


class TraceFile:
    """Append-safe: every append is one whole gzip member, and members joined are a gzip file.

    What an append has written stays readable whatever happens to the process afterwards. The name
    appears, in one rename, together with the first member.
    """

    def __init__(self, path: Path):
        self.path = path
        self.size = 0
        self._file = None

    @classmethod
    def take_up(cls, path: Path, size: int) -> TraceFile:
        """A file that another process has begun, cut back to what is known to be whole."""
        file = cls(path)
        file._file = open(path, "r+b", buffering=0)  # noqa: SIM115  (stays open between appends)
        file._file.truncate(size)
        file._file.seek(size)
        file.size = size
        return file

    def append(self, lines: bytes) -> None:
        """Writes these lines as one more member."""
        member = gzip.compress(lines, compresslevel=6, mtime=0)
        if self._file is None:
            self._begin(member)
        else:
            self._file.write(member)
        self.size += len(member)

    def close(self) -> None:
        """Brings the file to the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def _begin(self, member: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        self._file = open(part, "wb", buffering=0)  # noqa: SIM115
        try:
            self._file.write(member)
            os.replace(part, self.path)
        except OSError:
            self._file.close()
            self._file = None
            part.unlink(missing_ok=True)
            raise
