"""A trace in memory, and its file: docs/reference/trace_format.md."""

import gzip
import json
import math
import threading
import time


def number(value):
    """As JSON has it: what is not finite is a string."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


class Trace:
    """Collects records from all threads; `write` makes one file."""

    def __init__(self, header):
        clock = {"unit": "ns", "source": "CLOCK_MONOTONIC"}
        clock.update(mono0=time.monotonic_ns(), unix0=time.time_ns())
        first = {"rec": "header", "format": "hooktrace", "version": [1, 0], "rank": 0, "world": 1}
        self.header = {**first, "clock": clock, **header}
        self.records = []
        self._lock, self._threads, self._events = threading.RLock(), {}, 0

    def add(self, record):
        """A record that is no event."""
        with self._lock:
            self.records.append(record)

    def emit(self, kind, graph_task, depth, /, **fields):
        """An event; fields without a value are left out. The record, which may still be changed."""
        with self._lock:
            self._events += 1
            event = {"rec": "ev", "lc": self._events, "t": time.monotonic_ns(), "r": 0}
            event.update(th=self.thread_index(), k=kind, gt=graph_task, d=depth)
            event.update({key: value for key, value in fields.items() if value is not None})
            self.records.append(event)
            return event

    def thread_index(self):
        """Number of this thread; a new one gets a record."""
        ident = threading.get_ident()
        if ident not in self._threads:
            self._threads[ident] = len(self._threads)
            current = threading.current_thread()
            is_main = current is threading.main_thread()
            record = {"rec": "thread", "th": self._threads[ident], "name": current.name}
            self.records.append({**record, "main": is_main})
        return self._threads[ident]

    def events(self):
        """All events so far."""
        return [record for record in self.records if record["rec"] == "ev"]

    def write(self, path):
        """To a compressed file, which appears whole or not at all."""
        end = {"rec": "end", "events": self._events, "records": len(self.records)}
        unfinished = path.with_name(f".{path.name}")
        with gzip.open(unfinished, "wt") as file:
            for record in [self.header, *self.records, end]:
                file.write(json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n")
        unfinished.rename(path)
