"""What became of many programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zeroproof_subject.subject import Verdict


@dataclass
class Tally:
    """Counts by status, and the smallest program of each signature."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, case: dict[str, Any], verdict: Verdict) -> None:
        """One case."""
        self.statuses[verdict.status] += 1
        if verdict.seconds:
            self.seconds.append(verdict.seconds)
        if verdict.difference is None:
            return
        signature = verdict.difference.signature
        known = self.findings.setdefault(signature, {"cases": [], "size": None})
        known["cases"].append(case["case"])
        size = len(str(case["program"]))
        if known["size"] is None or size < known["size"]:
            known.update(size=size, case=case, difference=verdict.difference.document())

    def median(self) -> float:
        """Seconds of a program."""
        return sorted(self.seconds)[len(self.seconds) // 2] if self.seconds else 0.0

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "schema": "zeroproof.subject_tally/1",
            "statuses": dict(self.statuses),
            "median_seconds": self.median(),
            "findings": self.findings,
        }

    def counts(self) -> str:
        """How many programs, by what became of them."""
        counts = ", ".join(f"{count} {status}" for status, count in self.statuses.most_common())
        return f"{sum(self.statuses.values())} programs: {counts}"

    def text(self) -> str:
        """A line a signature, the most frequent first."""
        lines = [f"{self.counts()}; median {1000 * self.median():.0f} ms"]
        by_count = sorted(self.findings.items(), key=lambda it: -len(it[1]["cases"]))
        for signature, finding in by_count:
            number = finding["case"]["case"]
            lines.append(f"{len(finding['cases']):5}  {signature}  (smallest: case {number})")
        return "\n".join(lines)
