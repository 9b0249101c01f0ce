"""Findings that have been judged: files of known/, which a new finding is compared with."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from zeroproof_subject.compare import Difference
from zeroproof_subject.history import History, features_of_job
from zeroproof_subject.program import Program

VERDICTS = ("defect", "limit", "ours")
OPERATORS = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "==": lambda left, right: left == right,
}


class WrongEntry(ValueError):
    """A file of known/ that says something else than its schema allows."""


@dataclass(frozen=True)
class Entry:
    """One judged finding. All that it asks for has to hold."""

    id: str
    verdict: str  # defect, limit, ours
    text: str
    issue: str = ""  # a public report
    signatures: tuple[str, ...] = (".*",)  # regular expressions, any of which is in the signature
    features: tuple[str, ...] = ()  # of the program (history.py), all
    any_feature: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # features, none
    versions: dict[str, str] = field(default_factory=dict)  # {"torch": ">=2.4,<2.16"}
    options: dict[str, list[Any]] = field(default_factory=dict)  # {"stage": [1, 2]}

    def is_of(self, options: dict[str, Any], versions: dict[str, str]) -> bool:
        """Whether it speaks of an engine with these options and versions."""
        return all(options.get(name) in values for name, values in self.options.items()) and all(
            name in versions and has_version(versions[name], wanted)
            for name, wanted in self.versions.items()
        )

    def explains(self, signature: str, features: frozenset[str]) -> bool:
        """Whether a finding is this one."""
        return (
            any(re.search(pattern, signature) for pattern in self.signatures)
            and features.issuperset(self.features)
            and features.isdisjoint(self.without)
            and (not self.any_feature or not features.isdisjoint(self.any_feature))
        )

    def may_show(self, ever: frozenset[str], of_job: frozenset[str]) -> bool:
        """Whether a program with these features can show it.

        A feature of the configuration that it is without holds from the first statement on.
        """
        return bool(self.features or self.any_feature) and (
            of_job.isdisjoint(self.without)
            and ever.issuperset(map(plain_name, self.features))
            and (not self.any_feature or not ever.isdisjoint(map(plain_name, self.any_feature)))
        )

    def document(self) -> dict[str, str]:
        """What a report says about it."""
        return {"name": self.id, "verdict": self.verdict, "issue": self.issue, "text": self.text}


def plain_name(feature: str) -> str:
    """Without `ever`."""
    return feature.removeprefix("ever ")


def has_version(version: str, wanted: str) -> bool:
    """Whether a version is in a range as ">=0.18.9,<0.19.8"."""
    for bound in wanted.split(","):
        operator, number = re.fullmatch(r"\s*([<>=]=?)\s*([\d.]+)\s*", bound).groups()
        if not OPERATORS[operator](numbers_of(version), numbers_of(number)):
            return False
    return True


def numbers_of(version: str) -> tuple[int, ...]:
    """0.19.8+cpu is (0, 19, 8)."""
    release = re.match(r"[\d.]*", version)[0]
    return tuple(int(part) for part in release.split(".") if part)


def entry_from(document: dict[str, Any], where: str) -> Entry:
    """Raises WrongEntry."""
    try:
        sequences = ("signatures", "features", "any_feature", "without")
        lists = {key: tuple(document[key]) for key in sequences if key in document}
        entry = Entry(**{**document, **lists})
    except TypeError as error:
        raise WrongEntry(f"{where}: {document.get('id')}: {error}") from error
    if entry.verdict not in VERDICTS:
        raise WrongEntry(f"{where}: {entry.id}: verdict is {entry.verdict!r}; give {VERDICTS}")
    return entry


def entries_of(engine: str) -> list[Entry]:
    """Of known/ENGINE.json, which need not be there."""
    file = resources.files("zeroproof_subject") / "known" / f"{engine}.json"
    if not file.is_file():
        return []
    documents = json.loads(file.read_text(encoding="utf-8"))
    return [entry_from(it, file.name) for it in documents]


@dataclass
class Known:
    """The judged findings of one engine as it is here; the first that explains one counts."""

    entries: list[Entry]

    @staticmethod
    def of(engine: str, options: dict[str, Any], versions: dict[str, str]) -> Known:
        """Of the package's files."""
        return Known([it for it in entries_of(engine) if it.is_of(options, versions)])

    def entry_of(self, program: Program, difference: Difference) -> Entry | None:
        """None: a new finding."""
        features = History(program, difference.at, difference.engine).features
        found = (it for it in self.entries if it.explains(difference.signature, features))
        return next(found, None)

    def shown_by(self, program: Program) -> Entry | None:
        """A known finding that a program may show before any other."""
        ever = frozenset(map(plain_name, History(program, "end").features))
        of_job = frozenset(features_of_job(program))
        return next((entry for entry in self.entries if entry.may_show(ever, of_job)), None)
