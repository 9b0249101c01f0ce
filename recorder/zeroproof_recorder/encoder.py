"""Turns records into lines of hooktrace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Optional, Union

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode

# An event is (nanoseconds, thread, kind, graph task id, depth, fields or None); that backward call
# n turned out to be graph task m is (n, m); everything else is written as the record it is.
Record = Union[tuple, dict[str, Any]]

# The attributes of DeepSpeed's manager; hook_manager reports their values.
MANAGER_STATE = (
    "remaining_grad_acc_hooks",
    "len(_grad_acc_post_hooks)",
    "backward_active_depth",
    "backward_seen_this_step",
    "epilogue_ran_this_backward",
    "hooks_fired_this_backward",
    "max_expected_hooks_seen",
    "post_backward_callback_queued",
    "post_backward_callback_graph_task_id",
)
_PLAIN = (str, int, bool, type(None))
_BRACKET = ("gt.begin", "gt.end")


class Encoder:
    """Numbers the events of one rank and writes them as JSON, in the order it is given them.

    The logical clock is that order: records arrive as they were taken, one at a time. Encoding is
    thus free to happen much later.
    """

    def __init__(self, events: int = 0, records: int = 0):
        self.events = events
        self.records = records
        self._graph_tasks: dict[int, int] = {}  # by backward call

    def lines(self, records: Sequence[Record], rank: int) -> bytes:
        """These records as lines."""
        self._graph_tasks.update(record for record in records if _is_graph_task(record))
        out = []
        for record in records:
            if isinstance(record, dict):
                out.append(_encode(record))
            elif not _is_graph_task(record):
                self.events += 1
                out.append(self._event(record, rank))
        self.records += len(out)
        return "".join(f"{text}\n" for text in out).encode("ascii")

    def end_line(self) -> bytes:
        """The record that says that the file is complete."""
        return line({"rec": "end", "events": self.events, "records": self.records})

    def _event(self, event: tuple, rank: int) -> str:
        t, th, kind, gt, depth, fields = event
        if kind in _BRACKET:
            gt = self._graph_tasks.get(fields["call"], -1)
        elif kind.startswith("bhs.") and "state" in fields:
            fields["state"] = dict(zip(MANAGER_STATE, fields["state"]))
        head = (
            f'{{"rec":"ev","lc":{self.events},"t":{t},"r":{rank},"th":{th},'
            f'"k":"{kind}","gt":{gt},"d":{depth}'
        )
        fields = _present(fields) if fields else None
        return f"{head},{_encode(fields)[1:]}" if fields else head + "}"


def line(record: dict[str, Any]) -> bytes:
    """One record as a line."""
    return (_encode(record) + "\n").encode("ascii")


def plain(value: Any) -> Any:
    """A value in what JSON and marshal have words for."""
    if isinstance(value, float):
        return _number(float(value))
    if type(value) in _PLAIN:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def header(rank: int, world: int, clock: dict[str, Any], facts: dict[str, Optional[Any]]) -> dict:
    """The first record of a file."""
    return {
        "rec": "header",
        "format": "hooktrace",
        "version": [1, 1],
        "rank": rank,
        "world": world,
        "clock": clock,
        **_present(facts),
    }


def _is_graph_task(record: Record) -> bool:
    return len(record) == 2 and isinstance(record, tuple)


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    """Absent fields are left out."""
    return {key: plain(value) for key, value in fields.items() if value is not None}


def _number(value: float) -> Union[float, str]:
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value
