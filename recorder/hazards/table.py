"""Cases of hazards as lines of text, and the recorded lines of a release."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "hazards"
LINE = re.compile(
    r"(?P<hazard>[HN]\d+) (?P<word>CONFIRMED|absent|control|fails|not run|may crash|crashed) "
    r"\((?P<case>.*)\): observed (?P<observed>.*); expected (?P<expected>.*)"
)


@dataclass(frozen=True)
class Case:
    """One situation on one release: CONFIRMED, absent, control, fails, not run, crashed."""

    hazard: str
    word: str
    case: str
    observed: str
    expected: str

    def __str__(self):
        return (
            f"{self.hazard} {self.word} ({self.case}): "
            f"observed {self.observed}; expected {self.expected}"
        )

    @property
    def key(self):
        """What stays the same from release to release."""
        return self.hazard, self.case

    def checked(self):
        """The same, or `fails` where a confirmed case has no symptom that differs."""
        is_empty = not self.observed.strip() or not self.expected.strip()
        if self.word == "CONFIRMED" and (is_empty or self.observed == self.expected):
            return replace(self, word="fails", observed=self.observed or "(empty)")
        return self


def parse_case(line):
    """The case of a line; None for another line."""
    found = LINE.fullmatch(line)
    return Case(**found.groupdict()) if found else None


def read_cases(path):
    """The cases of a table."""
    found = map(parse_case, Path(path).read_text().splitlines()[1:])
    return [case for case in found if case]


def table_of(header):
    """The table of the release that the first line of an output names."""
    version = re.match(r"DeepSpeed ([\w.+]+),", header).group(1)
    return FOLDER / f"deepspeed-{version}.txt"


def differences(recorded, found, is_whole=True):
    """What a run did otherwise than its table; cases left out matter in a whole run alone."""
    before = {case.key: case for case in recorded}
    now = {case.key: case for case in found}
    lines = []
    for key, case in now.items():
        if key not in before:
            lines.append(f"new:  {case}")
        elif str(before[key]) != str(case):
            lines += [f"was:  {before[key]}", f"now:  {case}"]
    if is_whole:
        lines += [f"gone: {case}" for key, case in before.items() if key not in now]
    return lines
