"""The subject protocol: JSON lines over stdin and stdout (docs/SUBJECTS.md).

`run` answers with what the ranks saw; `compare` with a verdict beside plain PyTorch. A verdict
has `status`, `seconds`, `difference`, and may have `signature` and `known`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from zeroproof_subject.program import NotAProgram

if TYPE_CHECKING:
    from zeroproof_subject.subject import Subject

VERSION = 1
REQUESTS = ("run", "compare")  # each a method of a subject


def hello(subject: Subject) -> dict[str, Any]:
    """The first line of a subject."""
    return {
        "zeroproof_subject": VERSION,
        "engine": subject.choice.name,
        "options": subject.options,
        "versions": subject.versions(),
        "capabilities": subject.capabilities(),
    }


def answers(subject: Subject, requests: Iterable[str]) -> Iterator[dict[str, Any]]:
    """A hello, then an answer to each request, until {"end": true} or the end of the input."""
    yield hello(subject)
    for line in requests:
        if not line.strip():
            continue
        try:
            request = json.loads(line)
        except json.JSONDecodeError as error:
            yield {"status": "refused", "detail": f"no JSON: {error}"}
            continue
        if not isinstance(request, dict) or request.get("end"):
            return
        yield answer(subject, request)


def answer(subject: Subject, request: dict[str, Any]) -> dict[str, Any]:
    """What became of the program of a request, under the request's id."""
    identity = {"id": request.get("id")}
    name = next((it for it in REQUESTS if isinstance(request.get(it), dict)), "")
    if not name:
        detail = "give a program as 'run' or 'compare'"
        return {**identity, "status": "refused", "detail": detail}
    try:
        return {**identity, **getattr(subject, name)(request[name]).document()}
    except NotAProgram as error:
        return {**identity, "status": "refused", "detail": str(error)}
