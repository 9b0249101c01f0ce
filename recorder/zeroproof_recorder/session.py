"""The recording of one process: takes events from anywhere and writes them late."""

from __future__ import annotations

import marshal
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Optional

import torch

from .encoder import header, plain
from .errors import RecorderError
from .guard import Guard
from .guardian import Guardian
from .options import Options
from .place import Place, trace_name
from .spool import FORMAT, SPOOL_VERSION, Spool, packed, spool_path
from .writer import TraceWriter, absolute

graph_task_id = torch._C._current_graph_task_id
_now_ns, _this_thread, _pack = time.monotonic_ns, threading.get_ident, marshal.dumps
transform_on_top = torch._C._functorch.peek_interpreter_stack


class GraphTaskFrame:
    """A backward call that is open; its graph task's id becomes known inside it."""

    __slots__ = ("call", "gt")

    def __init__(self, call: int):
        self.call = call
        self.gt = -1


class Session:
    """Clock, spool and file of a rank. Any thread may emit.

    A failure in here must not fail the training: a file that cannot be written ends the
    recording with one line on stderr.
    """

    def __init__(self, options: Options, facts: dict[str, Any]):
        self.options = options
        self.facts = facts  # of the header; settled with the first write
        self.guard = Guard(self._note_lost)
        self.is_open = False  # events are taken
        self.is_abandoned = False  # this is a forked child
        self.compiling_on: Optional[int] = None  # the thread on which torch.compile works
        self.calls: list[GraphTaskFrame] = []  # backward calls under way, outermost first
        self._clock = {
            "unit": "ns",
            "source": "CLOCK_MONOTONIC",
            "mono0": time.monotonic_ns(),
            "unix0": time.time_ns(),
        }
        self._threads: dict[int, int] = {}
        self._writer = TraceWriter()
        self._spool: Optional[Spool] = None
        self._guardian: Optional[Guardian] = None
        self._lock = threading.RLock()
        self._calls_made = 0
        self._early_notes: list[dict[str, Any]] = []  # made before there was a spool
        self._passes = 0  # how often the spool was emptied: a reader beside us sees it by that

    # ---- begin and end -----------------------------------------------------------------------

    def start(self) -> None:
        """Makes the spool and sets its guardian. Raises if the folder cannot be written."""
        folder = Path(absolute(self.options.out))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._spool = Spool(spool_path(folder), self.options.buffer_mb << 20, self._lock)
        except (OSError, ValueError) as error:
            raise RecorderError(f"{folder}: cannot record there: {error}") from error
        self.tell_facts()
        for record in self._early_notes:
            self.add(record)
        try:
            self._guardian = Guardian(self._spool.path)
        except OSError as error:
            self.note(f"no guardian: {error}; after a crash use zeroproof_recorder recover")

    def tell_facts(self) -> None:
        """Leaves word of header and file name, for the process that has to write the file."""
        spool = {"version": SPOOL_VERSION, "pass": self._passes}
        base = {"writer": self._writer.state(), "begin": self._begin(), "spool": spool}
        self._put(packed({"base": plain(base)}))

    def close(self) -> None:
        """Writes the rest and the end record. Events that come later are lost."""
        self.is_open = False
        with self._lock:
            self.flush()
            if self._spool is None:
                return
            try:
                self._writer.end()
            except OSError as error:
                self._break(error)
            self._drop_spool()
        if self._guardian is not None:
            self._guardian.dismiss()
            self._guardian = None

    def abandon(self) -> None:
        """Forgets everything and does not write: for a forked child."""
        self.is_open = False
        self.is_abandoned = True
        self._lock = threading.RLock()
        if self._spool is not None:
            self._spool.forget()
            self._spool = None
        if self._guardian is not None:
            self._guardian.forget()
            self._guardian = None

    # ---- what is recorded --------------------------------------------------------------------

    def emit(self, kind: str, fields: Optional[dict[str, Any]] = None) -> None:
        """Takes one event, with the graph task and the depth of this moment."""
        if not self.is_open or (self.compiling_on is not None and self.is_muted(kind)):
            return
        gt = graph_task_id()
        calls = self.calls
        if gt != -1 and calls and calls[-1].gt == -1:
            calls[-1].gt = gt
            self._put(packed((calls[-1].call, gt)))
        if transform_on_top() is not None:
            fields = {**(fields or {}), "ft": transform_stack()}
        thread = self._threads.get(_this_thread())
        if thread is None:
            thread = self._declare_thread()
        event = (_now_ns(), thread, kind, gt, len(calls), fields)
        try:
            record = _pack(event, FORMAT)
        except ValueError:  # a value that is not plain
            record = packed((*event[:5], plain(fields)))
        self._put(record)

    def is_muted(self, kind: str = "") -> bool:
        """Whether this thread compiles: what happens there is no part of the job's order.

        Collectives are real ones even then.
        """
        return self.compiling_on == _this_thread() and not kind.startswith("coll.")

    def emitter(self, kind: str, fields: dict[str, Any]) -> Callable[[], None]:
        """Emits always the same, for what happens often: what does not change is packed once."""
        tail = packed((kind, plain(fields)))
        calls, threads, put = self.calls, self._threads, self._put

        def emit_known():
            gt = graph_task_id()
            first = gt != -1 and calls and calls[-1].gt == -1
            is_plain = self.is_open and self.compiling_on is None
            if first or not is_plain or transform_on_top() is not None:
                self.emit(kind, fields)
                return
            thread = threads.get(_this_thread())
            if thread is None:
                thread = self._declare_thread()
            put(_pack((_now_ns(), thread, gt, len(calls)), FORMAT) + tail)

        return emit_known

    def add(self, record: dict[str, Any]) -> None:
        """Takes a record that is no event."""
        self._put(packed(record))

    def note(self, text: str) -> None:
        """Leaves a line for people in the file."""
        self.add({"rec": "note", "text": text})

    def _note_lost(self, text: str, observer: str, lost: list[str]) -> None:
        """A note that also says which kinds of events are missing from now on, and why."""
        record = {"rec": "note", "text": text, "observer": observer, "lost": list(lost)}
        if self._spool is None:
            self._early_notes.append(record)
        else:
            self.add(record)

    def next_call(self) -> int:
        """The number of the next backward call."""
        self._calls_made += 1
        return self._calls_made - 1

    # ---- writing -----------------------------------------------------------------------------

    @property
    def path(self) -> Optional[os.PathLike]:
        """The file, once something has been written."""
        return self._writer.path

    @property
    def events(self) -> int:
        """How many events have been written."""
        return self._writer.events

    def flush(self) -> None:
        """Encodes and writes what has been taken so far."""
        with self._lock:
            if self._spool is None:
                return
            records = [record for record in self._spool.records() if not _is_base(record)]
            try:
                self._writer.write(records, self._begin())
            except (OSError, ValueError) as error:
                self._break(error)
                return
            self._spool.reset()
            self._passes += 1
            self.tell_facts()

    def _put(self, record: bytes) -> None:
        spool = self._spool
        if spool is not None and not spool.put(record):
            self._put_after_flush(record)

    def _put_after_flush(self, record: bytes) -> None:
        self.flush()
        if self._spool is not None and not self._spool.put(record):
            self._break(ValueError(f"a record of {len(record)} bytes is larger than the buffer"))

    def _begin(self) -> dict[str, Any]:
        place, facts = Place.of_process(), self.facts
        name = trace_name(self.options.program, place, facts.get("stage"), facts.get("dtype"))
        return {
            "path": absolute(self.options.out / name),
            "header": header(place.rank, place.world, self._clock, facts),
        }

    def _break(self, error: Exception) -> None:
        self.is_open = False
        self._drop_spool()
        message = f"zeroproof-recorder: recording ended, training goes on: {error}"
        print(message, file=sys.stderr, flush=True)

    def _drop_spool(self) -> None:
        if self._spool is not None:
            self._spool.remove()
            self._spool = None

    def _declare_thread(self) -> int:
        thread = threading.current_thread()
        index = self._threads.setdefault(threading.get_ident(), len(self._threads))
        is_main = thread is threading.main_thread()
        self.add({"rec": "thread", "th": index, "name": thread.name, "main": is_main})
        return index


def transform_stack() -> list[list[Any]]:
    """The functorch interpreters of this thread, ``[[level, kind], ...]``, bottom first."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    return [[layer.level(), str(layer.key()).rsplit(".", 1)[-1]] for layer in stack]


def _is_base(record: Any) -> bool:
    return isinstance(record, dict) and "base" in record
