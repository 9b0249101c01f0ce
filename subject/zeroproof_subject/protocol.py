"""The subject protocol: JSON lines over stdin and stdout (docs/reference/subject.md).

A request is {"id": N, "run": PROGRAM}, {"id": N, "compare": PROGRAM} or {"end": true}. A request
with a program may have "refusals": the statements that the engine must refuse, {PLACE: NAME OF THE
ERROR}, as {"body/3": "step_inside_no_sync"}. The answer to `run` has what each rank saw. The answer to `compare` is a verdict:
  status      equal, differs (also: raises what plain PyTorch does not raise), crash, hang,
              no_reference (plain PyTorch fails), refused, or skipped (only where the request has
              "skip_known": true: the program has all that a known finding needs, and did not run)
  seconds     of the engine
  difference  null, or an object: rank, at, what, text, signature, expected, observed
  signature   only with a difference: a string, the same for findings that are likely the same
  known       only where a file of known/ describes the finding: an object with name, verdict
              ("defect", "limit" or "ours"), issue (a URL or "") and text
  detail      only with no_reference and refused: why

JSON has no NaN and no infinity: such numbers of answers are the texts "NaN", "Infinity" and
"-Infinity".
"""

from __future__ import annotations

import json
import math
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
        options = {"skip_known": True} if name == "compare" and request.get("skip_known") else {}
        program = with_refusals(request[name], request)
        return {**identity, **strict(getattr(subject, name)(program, **options).document())}
    except NotAProgram as error:
        return {**identity, "status": "refused", "detail": str(error)}


def with_refusals(program: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A program with what a request, or a case, says about it."""
    refusals = given.get("refusals")
    return {**program, "refusals": refusals} if refusals else program


def strict(value: Any) -> Any:
    """The same, of values that JSON has."""
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(one) for one in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
