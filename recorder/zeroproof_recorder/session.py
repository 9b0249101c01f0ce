"""The recording of one process: takes events from anywhere, keeps few, writes them late."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from typing import Any, Optional

import torch

from .encoder import Encoder, GraphTaskFrame, Record, header, line
from .options import Flush, Options
from .place import Place, trace_name
from .trace_file import TraceFile

_graph_task_id = torch._C._current_graph_task_id
_transform_on_top = torch._C._functorch.peek_interpreter_stack


class Session:
    """Buffer, clock and file of a rank. Any thread may emit; one at a time writes.

    Nothing that fails here may fail the training: a file that cannot be written ends the
    recording with one line on stderr.
    """

    def __init__(self, options: Options, facts: dict[str, Any]):
        self.options = options
        self.facts = facts  # of the header; may be completed until the first flush
        self.is_open = False  # events are taken
        self.calls: list[GraphTaskFrame] = []  # backward calls under way, outermost first
        self._clock = {
            "unit": "ns",
            "source": "CLOCK_MONOTONIC",
            "mono0": time.monotonic_ns(),
            "unix0": time.time_ns(),
        }
        self._buffer: deque[Record] = deque()
        self._threads: dict[int, int] = {}
        self._encoder = Encoder()
        self._file: Optional[TraceFile] = None
        self._rank = 0
        self._flushing = threading.Lock()
        self._is_broken = False
        self._flushes_each = options.flush is Flush.EVENT
        self._calls_made = 0

    @property
    def path(self) -> Optional[os.PathLike]:
        """The file, once something has been written."""
        return self._file.path if self._file else None

    @property
    def events(self) -> int:
        """How many events have been written."""
        return self._encoder.events

    def emit(self, kind: str, fields: Optional[dict[str, Any]] = None) -> None:
        """Takes one event, with the graph task and the depth of this moment."""
        if not self.is_open:
            return
        gt = _graph_task_id()
        calls = self.calls
        if gt != -1 and calls and calls[-1].gt == -1:
            calls[-1].gt = gt
        self.emit_in(gt, kind, fields)

    def emit_in(self, gt: int | GraphTaskFrame, kind: str, fields: Optional[dict] = None) -> None:
        """Takes one event of a graph task that is not, or not yet, current."""
        if not self.is_open:
            return
        if _transform_on_top() is not None:
            fields = {**(fields or {}), "ft": transform_stack()}
        thread = self._threads.get(threading.get_ident())
        if thread is None:
            thread = self._declare_thread()
        buffer = self._buffer
        buffer.append((time.monotonic_ns(), thread, kind, gt, len(self.calls), fields))
        if self._flushes_each or len(buffer) >= 2 * self.options.buffer_events:
            self.flush()

    def add(self, record: dict[str, Any]) -> None:
        """Takes a record that is no event."""
        self._buffer.append(record)

    def note(self, text: str) -> None:
        """Leaves a line for people in the file."""
        self.add({"rec": "note", "text": text})

    def next_call(self) -> int:
        """The number of the next backward call."""
        self._calls_made += 1
        return self._calls_made - 1

    def rest(self) -> None:
        """A good moment to write: no graph task is open on this thread."""
        if len(self._buffer) >= self.options.buffer_events:
            self.flush()

    def flush(self) -> None:
        """Encodes and writes what has been taken so far."""
        if self._is_broken:
            self._buffer.clear()
            return
        with self._flushing:
            try:
                lines = self._encoder.lines(self._drain(), self._place().rank)
                if lines:
                    self._append(lines)
            except (OSError, ValueError) as error:
                self._break(error)

    def close(self) -> None:
        """Writes the rest and the end record. Events that come later are lost."""
        self.is_open = False
        self.flush()
        if self._is_broken or self._file is None:
            return
        with self._flushing:
            try:
                self._file.append(self._encoder.end_line())
                self._file.close()
            except OSError as error:
                self._break(error)
            self._is_broken = True

    def abandon(self) -> None:
        """Forgets everything and writes nothing more: for a forked child."""
        self.is_open = False
        self._is_broken = True
        self._flushing = threading.Lock()
        self._buffer = deque()

    def _drain(self):
        buffer = self._buffer
        while True:
            try:
                yield buffer.popleft()
            except IndexError:
                return

    def _append(self, lines: bytes) -> None:
        if self._file is None:
            place = self._place()
            facts = self.facts
            name = trace_name(
                self.options.program, place, facts.get("stage"), facts.get("dtype")
            )
            self._file = TraceFile(self.options.out / name)
            lines = line(header(place.rank, place.world, self._clock, facts)) + lines
        self._file.append(lines)

    def _place(self) -> Place:
        """Where we are; settled with the first line that is written."""
        if self._file is None:
            self._settled = Place.of_process()
        return self._settled

    def _break(self, error: Exception) -> None:
        self._is_broken = True
        self.is_open = False
        print(
            f"zeroproof-recorder: recording ended, training goes on: {error}",
            file=sys.stderr,
            flush=True,
        )

    def _declare_thread(self) -> int:
        thread = threading.current_thread()
        index = self._threads.setdefault(threading.get_ident(), len(self._threads))
        self.add(
            {
                "rec": "thread",
                "th": index,
                "name": thread.name,
                "main": thread is threading.main_thread(),
            }
        )
        return index


def transform_stack() -> list[list[Any]]:
    """The functorch interpreters of this thread, ``[[level, kind], ...]``, bottom first."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    return [[layer.level(), str(layer.key()).rsplit(".", 1)[-1]] for layer in stack]
