"""Events on their way to the file: in memory that outlives the process.

A spool is a file mapped into memory. What has been put there is still there after a segmentation
fault, an abort or SIGKILL, without a system call an event. It is bounded: when it is full its owner
writes it out and begins again.
"""

from __future__ import annotations

import marshal
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LENGTH = struct.Struct("<I")
_pack_length = _LENGTH.pack_into
_END = _LENGTH.pack(0)
FORMAT = 2  # of marshal: without references between objects, which is quicker
SPOOL_VERSION = 1  # of what the records are: `zeroproof watch` reads them beside us


def packed(record: Any) -> bytes:
    """A record as bytes; ValueError if it holds anything but plain values."""
    return marshal.dumps(record, FORMAT)


class Spool:
    """Any thread may put; each record is there whole or not at all.

    A signal handler of Python may come in between and put, too: its records wait in `late`.
    """

    def __init__(self, path: Path, capacity: int, lock=None):
        self.path = path
        self._capacity = capacity
        self._at = 0
        self._lock = lock or threading.RLock()  # its owner holds it from reading to reset
        self._is_busy = False
        self._late: list[bytes] = []
        with open(path, "w+b") as file:
            file.truncate(capacity)
            self._memory = mmap.mmap(file.fileno(), capacity)

    def put(self, record: bytes) -> bool:
        """Takes a record, or says that there is no room."""
        size = len(record)
        with self._lock:
            if self._is_busy:
                self._late.append(record)
                return True
            at = self._at
            after = at + 4 + size
            if after + 4 > self._capacity:
                return False
            self._is_busy = True
            self._memory[at + 4 : after + 4] = record + _END
            _pack_length(self._memory, at, size)  # last: now it counts
            self._at = after
            self._is_busy = False
            if self._late:
                self._put_late()
            return True

    def records(self) -> list[Any]:
        """Everything that has been put since the last reset."""
        return list(unpacked(self._memory))

    def reset(self) -> None:
        """Begins again."""
        _pack_length(self._memory, 0, 0)
        self._at = 0
        self._put_late()

    def _put_late(self) -> None:
        waiting, self._late = self._late, []
        self._late = [record for record in waiting if not self.put(record)]

    def remove(self) -> None:
        """Takes the file away; by that others see that its owner is done."""
        self._memory.close()
        self.path.unlink(missing_ok=True)

    def forget(self) -> None:
        """Lets go of the file without touching it: for a forked child."""
        self._memory.close()


def unpacked(memory) -> Iterator[Any]:
    """The records in the bytes of a spool."""
    at = 0
    while at + 4 <= len(memory):
        (size,) = _LENGTH.unpack_from(memory, at)
        if size == 0 or at + 4 + size > len(memory):
            return
        yield _record_of(memory[at + 4 : at + 4 + size])
        at += 4 + size


def _record_of(data: bytes) -> Any:
    """Of an emitter: (nanoseconds, thread, graph task id, depth), followed by (kind, fields)."""
    record = marshal.loads(data)
    if type(record) is not tuple or len(record) != 4:
        return record
    kind, fields = marshal.loads(data[len(marshal.dumps(record, FORMAT)) :])
    return (*record[:2], kind, *record[2:], fields)


def spool_path(folder: Path) -> Path:
    """A name that no other process of any host that writes to the folder has."""
    return folder / f".{os.uname().nodename}.{os.getpid()}.spool"
