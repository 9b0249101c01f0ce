"""An engine that runs programs: its pool, what it can do, and the truth beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zeroproof_subject import device, engines
from zeroproof_subject.compare import (
    Difference,
    failure,
    first_difference,
    has_reference,
    key_of,
    overflows,
)
from zeroproof_subject.engine import Truth
from zeroproof_subject.known import Entry, Known
from zeroproof_subject.pool import Pool, RunResult
from zeroproof_subject.program import parse
from zeroproof_subject.rank import EngineChoice

PLAIN = EngineChoice("plain")
PLAIN_CASES_OF_A_GROUP = 2000


class Subject:
    """One engine with its options. Imports its library: rank processes are forked from here."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.choice = EngineChoice(name, tuple(sorted(options.items())))
        self.options = options
        self.module = engines.load(name)
        self.module.prepare()
        self.pool = Pool(self.choice, self.module.CASES_OF_A_GROUP)
        self.truth = Truth.of(self.module)
        self.comparison: Comparison | None = None

    def all_options(self) -> dict[str, Any]:
        """With the defaults of those that are not given."""
        return {**self.module.OPTIONS, **self.options}

    def versions(self) -> dict[str, str]:
        """What findings depend on."""
        return {**self.module.versions(), **device.versions()}

    def capabilities(self) -> dict[str, Any]:
        """zeroproof.capabilities/1."""
        return self.module.capabilities(self.options)

    def run(self, document: dict[str, Any]) -> RunResult:
        """Raises NotAProgram."""
        return self.pool.run(document, parse(document).ranks, self.truth)

    def compare(self, document: dict[str, Any], skip_known: bool = False) -> Verdict:
        """Beside plain PyTorch. Raises NotAProgram."""
        if self.comparison is None:
            self.comparison = Comparison(self)
        return self.comparison.run(document, skip_known)

    def end(self) -> None:
        """Ends all processes."""
        if self.comparison is not None:
            self.comparison.plain.end()
        self.pool.end()


@dataclass
class Verdict:
    """One program on a subject and on plain PyTorch."""

    status: str  # equal, differs, hang, crash, no_reference, skipped
    seconds: float  # of the subject
    difference: Difference | None = None
    known: Entry | None = None
    detail: str = ""  # why there is no reference

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        document: dict[str, Any] = {
            "status": self.status,
            "seconds": self.seconds,
            "difference": self.difference.document() if self.difference else None,
        }
        if self.difference:
            document["signature"] = self.difference.signature
        if self.detail:
            document["detail"] = self.detail
        if self.known:
            document["known"] = self.known.document()
        return document


def why_none(reference: RunResult) -> str:
    """What plain PyTorch did instead of the whole program."""
    if reference.status != "ran":
        return f"plain PyTorch: {reference.status} after {reference.seconds:.0f} s: {reference.detail}"
    errors = [seen[-1]["values"] for seen in reference.ranks if seen and seen[-1]["what"] == "error"]
    if not errors:
        return "plain PyTorch: no observation"
    return f"plain PyTorch: {errors[0]['type']}: {errors[0]['text']}"


class Comparison:
    """Runs programs on a subject and beside it on plain PyTorch."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.plain = Pool(PLAIN, PLAIN_CASES_OF_A_GROUP)
        self.known = Known.of(subject.choice.name, subject.all_options(), subject.versions())

    def run(self, document: dict[str, Any], skip_known: bool = False) -> Verdict:
        """Raises NotAProgram. A program that may show a known finding need not run."""
        program = parse(document)
        if skip_known and (entry := self.known.shown_by(program)):
            return Verdict("skipped", 0.0, known=entry)
        if overflows(program):
            return Verdict("no_reference", 0.0, detail="its loss scale overflows float16")
        reference = self.plain.run(document, program.ranks, self.subject.truth)
        if not has_reference(reference.ranks):
            return Verdict("no_reference", 0.0, detail=why_none(reference))
        result = self.subject.run(document)
        difference = first_difference(program, reference.ranks, result.ranks)
        if difference is None and result.status == "ran":
            return Verdict("equal", result.seconds)
        # What a rank saw before is why the others wait.
        difference = difference or failure(0, "run", result.status, result.failure())
        status = difference.what if difference.what in ("crash", "hang") else "differs"
        return Verdict(status, result.seconds, difference, self.known.entry_of(program, difference))

    def script(self, document: dict[str, Any]) -> str | None:
        """The program as a script of its own; None: it does not differ. Raises NoScript."""
        from zeroproof_subject.script import Finding, Script

        difference = self.run(document).difference
        if difference is None:
            return None
        program = parse(document)
        reference = self.plain.run(document, program.ranks, self.subject.truth)
        key = difference.at, difference.what, difference.engine
        expected = [it for it in reference.ranks[difference.rank] if key_of(it) == key]
        finding = Finding(
            program=program,
            difference=difference,
            expected=expected[0]["values"] if expected else {},
            engine=self.subject.choice.name,
            options=self.subject.all_options(),
            versions=self.subject.versions(),
        )
        return Script(finding).text()

    def end(self) -> None:
        """Ends all processes."""
        self.plain.end()
        self.subject.end()
