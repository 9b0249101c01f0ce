"""Turns buffered records into lines of hooktrace."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Optional, Union

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode


class GraphTaskFrame:
    """A backward call that is open; its graph task's id becomes known inside it."""

    __slots__ = ("call", "gt")

    def __init__(self, call: int):
        self.call = call
        self.gt = -1


# An event waits as (nanoseconds, thread, kind, graph task id or frame, depth, fields or None).
Record = Union[tuple, dict[str, Any]]


class Encoder:
    """Numbers the events of one rank and writes them as JSON, in the order it is given them.

    The logical clock is that order: it is given by the buffer, into which threads append one at a
    time. Encoding is thus free to happen much later.
    """

    def __init__(self):
        self.events = 0
        self.records = 0

    def lines(self, records: Iterable[Record], rank: int) -> bytes:
        """These records as lines."""
        out = []
        for record in records:
            self.records += 1
            if isinstance(record, dict):
                out.append(_encode(record))
            else:
                self.events += 1
                out.append(self._event(record, rank))
        out.append("")
        return "\n".join(out).encode("ascii")

    def end_line(self) -> bytes:
        """The record that says that nothing is missing."""
        end = {"rec": "end", "events": self.events, "records": self.records}
        return line(end)

    def _event(self, event: tuple, rank: int) -> str:
        t, th, kind, gt, depth, fields = event
        if isinstance(gt, GraphTaskFrame):
            gt = gt.gt
        head = (
            f'{{"rec":"ev","lc":{self.events},"t":{t},"r":{rank},"th":{th},'
            f'"k":"{kind}","gt":{gt},"d":{depth}'
        )
        fields = _present(fields) if fields else None
        return f"{head},{_encode(fields)[1:]}" if fields else head + "}"


def line(record: dict[str, Any]) -> bytes:
    """One record as a line."""
    return (_encode(record) + "\n").encode("ascii")


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    """Absent fields are left out, and what JSON has no word for becomes text."""
    return {key: _value(value) for key, value in fields.items() if value is not None}


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (str, int, bool)) or value is None:
        return value
    if isinstance(value, dict):
        return {str(key): _value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    return str(value)


def _number(value: float) -> Union[float, str]:
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value


def header(rank: int, world: int, clock: dict[str, Any], facts: dict[str, Optional[Any]]) -> dict:
    """The first record of a file."""
    return {
        "rec": "header",
        "format": "hooktrace",
        "version": [1, 0],
        "rank": rank,
        "world": world,
        "clock": clock,
        **{key: value for key, value in facts.items() if value is not None},
    }
