"""An engine that runs programs: its pool, what it can do, and the truth beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zeroproof_subject import engines
from zeroproof_subject.compare import Difference, first_difference, has_reference
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
        self.comparison: Comparison | None = None

    def versions(self) -> dict[str, str]:
        """What findings depend on."""
        return self.module.versions()

    def capabilities(self) -> dict[str, Any]:
        """zeroproof.capabilities/1."""
        return self.module.capabilities(self.options)

    def run(self, document: dict[str, Any]) -> RunResult:
        """Raises NotAProgram."""
        return self.pool.run(document, parse(document).ranks, self.module.MISSING_IS_ZERO)

    def compare(self, document: dict[str, Any]) -> Verdict:
        """Beside plain PyTorch. Raises NotAProgram."""
        if self.comparison is None:
            self.comparison = Comparison(self)
        return self.comparison.run(document)

    def end(self) -> None:
        """Ends all processes."""
        if self.comparison is not None:
            self.comparison.plain.end()
        self.pool.end()


@dataclass
class Verdict:
    """One program on a subject and on plain PyTorch."""

    status: str  # equal, differs, hang, crash, no_reference
    seconds: float  # of the subject
    difference: Difference | None = None

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        difference = self.difference.document() if self.difference else None
        return {"status": self.status, "seconds": self.seconds, "difference": difference}


class Comparison:
    """Runs programs on a subject and beside it on plain PyTorch."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.plain = Pool(PLAIN, PLAIN_CASES_OF_A_GROUP)

    def run(self, document: dict[str, Any]) -> Verdict:
        """Raises NotAProgram."""
        program = parse(document)
        missing_is_zero = self.subject.module.MISSING_IS_ZERO
        reference = self.plain.run(document, program.ranks, missing_is_zero)
        if not has_reference(reference.ranks):
            return Verdict("no_reference", 0.0)
        result = self.subject.run(document)
        difference = first_difference(program, reference.ranks, result.ranks)
        # What a rank saw before is why the others wait.
        if result.status != "ran" and difference is None:
            difference = Difference(0, "run", result.status, result.detail)
            return Verdict(result.status, result.seconds, difference)
        return Verdict("differs" if difference else "equal", result.seconds, difference)

    def end(self) -> None:
        """Ends all processes."""
        self.plain.end()
        self.subject.end()
