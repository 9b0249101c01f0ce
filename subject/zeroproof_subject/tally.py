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
    # By the id of the known finding (empty: new) and the signature.
    findings: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def add(self, case: dict[str, Any], verdict: Verdict) -> None:
        """One case."""
        self.statuses[verdict.status] += 1
        if verdict.seconds:
            self.seconds.append(verdict.seconds)
        if verdict.difference is None:
            return
        signature = verdict.difference.signature
        entry = verdict.known.document() if verdict.known else None
        finding = self.findings.setdefault(
            (entry["name"] if entry else "", signature),
            {"signature": signature, "known": entry, "cases": [], "size": None},
        )
        finding["cases"].append(case["case"])
        size = len(str(case["program"]))
        if finding["size"] is None or size < finding["size"]:
            finding.update(size=size, case=case, difference=verdict.difference.document())

    def median(self) -> float:
        """Seconds of a program."""
        return sorted(self.seconds)[len(self.seconds) // 2] if self.seconds else 0.0

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "schema": "zeroproof.subject_tally/2",
            "statuses": dict(self.statuses),
            "median_seconds": self.median(),
            "findings": list(self.findings.values()),
        }

    def counts(self) -> str:
        """How many programs, by what became of them."""
        counts = ", ".join(f"{count} {status}" for status, count in self.statuses.most_common())
        return f"{sum(self.statuses.values())} programs: {counts}"

    def text(self) -> str:
        """A line a signature, new ones before known ones, the most frequent first."""
        lines = [f"{self.counts()}; median {1000 * self.median():.0f} ms"]
        sections = {"new": [], "known": []}
        for finding in sorted(self.findings.values(), key=lambda it: -len(it["cases"])):
            sections["known" if finding["known"] else "new"].append(finding)
        for title, findings in sections.items():
            lines += [f"{title}:"] if findings else []
            lines += map(line_of, findings)
        return "\n".join(lines)


def line_of(finding: dict[str, Any]) -> str:
    """One signature."""
    number, known = finding["case"]["case"], finding["known"]
    end = f"smallest: case {number}"
    if known:
        end = f"{known['name']}, {known['verdict']}; {end}"
    return f"{len(finding['cases']):5}  {finding['signature']}  ({end})"
