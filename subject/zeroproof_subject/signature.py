"""What findings are grouped by: a text that is the same for findings that are likely the same."""

from __future__ import annotations

import re
from typing import Any

from zeroproof_subject.history import History
from zeroproof_subject.program import Program

LONGEST_TEXT = 90
FAILURES = ("error", "hang", "crash")

# Of a message: what differs between findings of one kind.
VARYING = (
    (r"'[^']*'|\"[^\"]*\"|`[^`]*`", "X"),
    (r"\b(?:[\w]+\.)*(?:weight|bias|w|l\d+)\w*\b", "X"),
    (r"\bparameter unknown\b", "parameter X"),  # DeepSpeed's name for one of an engine before
    (r"0x[0-9a-f]+", "N"),
    (r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "N"),
    (r"\bN(?:[\s,]+N)+\b", "N"),
    (r"\s+", " "),
)


def of_failure(what: str, statement: str, text: str, frame: str) -> str:
    """An error, by its type, the framework's function and the message without names."""
    for pattern, replacement in VARYING:
        text = re.sub(pattern, replacement, text)
    place = f" in {frame}" if frame else ""
    return f"{what} at {statement}{place}: {text.strip()[:LONGEST_TEXT]}".strip()


def of_numbers(program: Program, at: str, what: str, engine: str, relation: str) -> str:
    """Wrong numbers, by how they are wrong and by what happened to gradients before."""
    before = History(program, at, engine).before
    return f"{what} at {at.split('/')[-1]} after {before}: {relation}"


def relation_of(expected: dict[str, Any], seen: dict[str, Any], differ: set[str]) -> str:
    """How gradients are wrong. Contributions are positive: what is less has been lost."""
    pairs = []
    for name in differ:
        due, got = expected.get(name), seen.get(name)
        count = len(due or got or ())
        pairs += list(zip(due or [0.0] * count, got or [0.0] * count, strict=False))
    wrong = [(due, got) for due, got in pairs if due != got]
    if any(got != got or abs(got) == float("inf") for _, got in wrong):
        return "not finite"
    signs = {(got > due) - (got < due) for due, got in wrong}
    if all(got == 0 for _, got in wrong):
        return "absent"
    if all(due == 0 for due, _ in wrong):
        return "where none is due"
    factors = {got / due for due, got in wrong if due != 0}
    if len(factors) == 1 and len(wrong) > 1 and len({due for due, _ in wrong}) > 1:
        return "a multiple" if factors.pop() > 1 else "a fraction"
    return {frozenset([1]): "too much", frozenset([-1]): "too little"}.get(
        frozenset(signs), "too much and too little"
    )
