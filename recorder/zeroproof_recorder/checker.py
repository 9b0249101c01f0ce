"""Whether trace files keep the rules of the format. Needs no PyTorch."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

EVENT_FIELDS = ("lc", "t", "r", "th", "k", "gt", "d")
# The fields that each kind must have.
KINDS = {
    "module.fwd_pre": ("module",),
    "module.fwd_post": ("module",),
    "param.post_acc": ("param",),
    "node.exec": ("node",),
    "gt.begin": ("call",),
    "gt.end": ("call",),
    "cb.queue": ("label",),
    "cb.begin": ("label",),
    "cb.end": ("label",),
    "ckpt.forward_begin": ("label",),
    "ckpt.forward_end": ("label",),
    "ckpt.recompute_begin": ("label",),
    "ckpt.recompute_end": ("label",),
    "ft.push": ("level", "kind"),
    "ft.pop": ("level", "kind"),
    "autocast.enter": ("device", "enabled"),
    "autocast.exit": ("device",),
    "zparam.gather_begin": ("params",),
    "zparam.gather_end": ("params",),
    "zparam.partition": ("params",),
    "zmod.fetch": ("module",),
    "zmod.release": ("module",),
    "bucket.add": ("param",),
    "bucket.ready": ("index",),
    "coll.issue": ("op", "cseq"),
    "coll.complete": ("op", "cseq"),
    "bhs.call": ("method",),
    "bhs.return": ("method",),
    "engine.call": ("method",),
    "engine.return": ("method",),
    "exc": ("type",),
    "mark": ("label",),
}
# The fields that each record but an event must have.
RECORDS = {
    "thread": ("th", "name", "main"),
    "param": ("id", "name", "shape", "dtype"),
    "group": ("name",),
    "note": ("text",),
    "wrapper": ("model", "kind"),
    "optimizer": ("id", "params"),
    "numbers": ("step", "when", "params"),
}
# Lists that have an entry for each of the params of a numbers record.
NUMBERS = ("grad_hash", "param_hash", "grad_norm", "param_norm")
MAJOR = 1


class TraceCheck:
    """Reads one file and collects what is wrong with it."""

    def __init__(self):
        self.findings: list[str] = []
        self.events = 0
        self.records = 0
        self.is_complete = False
        self._clock = 0
        self._times: dict[int, int] = {}
        self._calls: list[int] = []
        self._params: set[str] = set()
        self._optimizers: set[int] = set()
        self._collectives: set[tuple] = set()

    def read(self, lines: Iterable[str]) -> None:
        """Takes all lines of a file."""
        for number, line in enumerate(lines, 1):
            if self.is_complete:
                self._find(number, "a record after the end")
            try:
                record = json.loads(line)
            except ValueError:
                self._find(number, "no JSON")
                continue
            self._take(number, record)
        if self._calls:
            self._find(0, f"backward calls that never ended: {self._calls}")

    def _take(self, number: int, record: dict[str, Any]) -> None:
        kind = record.get("rec")
        if number == 1:
            if kind != "header" or record.get("format") != "hooktrace":
                self._find(number, "no header of a hooktrace")
            elif record.get("version", [0])[0] != MAJOR:
                self._find(number, f"version {record.get('version')}, not {MAJOR}.x")
            return
        if kind == "end":
            self.is_complete = True
            if (record["events"], record["records"]) != (self.events, self.records):
                self._find(number, f"counts {self.events} events, {self.records} records")
            return
        self.records += 1
        if kind == "ev":
            self.events += 1
            self._take_event(number, record)
            return
        missing = [name for name in RECORDS.get(kind, ()) if name not in record]
        if missing:
            self._find(number, f"{kind} lacks {', '.join(missing)}")
        elif kind == "param":
            self._params.add(record["name"])
        elif kind == "optimizer":
            self._optimizers.add(record["id"])
        elif kind == "numbers":
            self._take_numbers(number, record)

    def _take_numbers(self, number: int, record: dict[str, Any]) -> None:
        if record["when"] not in ("before_step", "after_step"):
            self._find(number, f"numbers {record['when']}: before_step or after_step")
        for name in NUMBERS:
            if len(record.get(name, record["params"])) != len(record["params"]):
                self._find(number, f"numbers: {name} has not one entry a parameter")

    def _take_event(self, number: int, event: dict[str, Any]) -> None:
        missing = [name for name in EVENT_FIELDS if name not in event]
        missing += [name for name in KINDS.get(event.get("k", ""), ()) if name not in event]
        if missing:
            self._find(number, f"{event.get('k')} lacks {', '.join(missing)}")
            return
        if event["lc"] <= self._clock:
            self._find(number, f"logical clock {event['lc']} after {self._clock}")
        self._clock = event["lc"]
        if event["t"] < self._times.get(event["th"], 0):
            self._find(number, f"time goes back on thread {event['th']}")
        self._times[event["th"]] = event["t"]
        self._take_kind(number, event)

    def _take_kind(self, number: int, event: dict[str, Any]) -> None:
        kind = event["k"]
        if kind == "gt.begin":
            self._calls.append(event["call"])
        elif kind == "gt.end":
            if event["call"] not in self._calls:
                self._find(number, f"end of backward call {event['call']}, which is not open")
            else:
                self._calls.remove(event["call"])
        elif kind == "param.post_acc" and self._params and event["param"] not in self._params:
            self._find(number, f"parameter {event['param']} was not declared")
        elif kind == "opt.step" and event.get("optimizer", -1) not in {*self._optimizers, -1}:
            self._find(number, f"optimizer {event['optimizer']} was not declared")
        elif kind.startswith("coll."):
            self._take_collective(number, event)

    def _take_collective(self, number: int, event: dict[str, Any]) -> None:
        key = event.get("key") or (event.get("group"), event["cseq"])
        if event["k"] == "coll.issue":
            if key in self._collectives:
                self._find(number, f"collective {key} is issued twice")
            self._collectives.add(key)
        elif key not in self._collectives:
            self._find(number, f"collective {key} completes, but was not issued")

    def _find(self, number: int, what: str) -> None:
        self.findings.append(f"line {number}: {what}" if number else what)


def check_paths(paths: Iterable[Path]) -> int:
    """Prints a line a file; 0 sound, 1 findings, 5 unreadable."""
    code = 0
    for path in _files(paths):
        code = max(code, _check_file(path))
    return code


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a trace, gzip or not, up to where the file breaks off."""
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    with (gzip.open if is_gzip else open)(path, "rb") as file:
        try:
            for line in file:
                if line.endswith(b"\n") and line.strip():
                    yield line.decode()
        except (EOFError, zlib.error):  # died while it wrote
            return


def _check_file(path: Path) -> int:
    check = TraceCheck()
    try:
        check.read(read_lines(path))
    except (OSError, UnicodeDecodeError) as error:
        print(f"unreadable  {path}: {error}")
        return 5
    word = "findings" if check.findings else "sound" if check.is_complete else "truncated"
    print(f"{word:<10}  {path}: {check.events} events")
    for finding in check.findings[:8]:
        print(f"    {finding}")
    return 1 if check.findings else 0


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if ".jsonl" in p.name and p.is_file())
        else:
            yield path
