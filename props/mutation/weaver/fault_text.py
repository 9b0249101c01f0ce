"""Reads *.faults files: faults as text (props/mutation/faults/README.md has the format)."""

import re
from dataclasses import dataclass, field

KEYS = ("properties", "policy", "quirks", "api", "larger", "decorator", "reason")
_ID = re.compile(r"fault ([A-Z][0-9]{2}[a-d]?): ?(.*)$")
_PART = re.compile(r"@ ([\w./]+): (before )?([\w:~<>=!+*()\[\] -]+)$")
_KEY = re.compile(r"(\w+): (\S.*)$")


class FaultError(Exception):
    """What is wrong with a fault; the text is for its author."""


@dataclass
class Hunk:
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)


@dataclass
class Part:
    file: str
    function: str
    is_before: bool
    line: int  # of the .faults file
    hunks: list = field(default_factory=list)


@dataclass
class Fault:
    id: str
    sentence: str
    place: str  # "faults/s.faults:12"
    keys: dict = field(default_factory=dict)
    parts: list = field(default_factory=list)


class _Reader:
    def __init__(self, name):
        self.name = name
        self.faults = []
        self.fault = None
        self.part = None
        self.last_key = None  # None: the sentence

    def fail(self, number, text):
        raise FaultError(f"{self.name}:{number}: {text}")

    def read(self, text):
        for number, line in enumerate(text.splitlines(), 1):
            self.line(number, line.rstrip())
        return self.faults

    def line(self, number, line):
        if not line:
            self.fault = self.part = None
        elif line[0] in "+-" and self.part:
            self.code(number, line)
        elif line[0] == "#":
            pass
        elif line.startswith("fault "):
            self.begin(number, line)
        elif not self.fault:
            self.fail(number, f"'{line}' belongs to no fault; a fault begins with 'fault ID: sentence'")
        elif line[0] == "@":
            self.begin_part(number, line)
        elif line.startswith("    ") and not self.part:
            self.go_on(line.strip())
        else:
            self.key(number, line)

    def begin(self, number, line):
        found = _ID.match(line)
        if not found:
            self.fail(number, f"'{line}' is not 'fault ID: sentence', with an id as S62 or F18b")
        self.fault = Fault(found.group(1), found.group(2), f"{self.name}:{number}")
        self.faults.append(self.fault)
        self.last_key = None

    def go_on(self, text):
        """The sentence or the value of the line before goes on."""
        if self.last_key is None:
            self.fault.sentence += " " + text
        else:
            self.fault.keys[self.last_key] += " " + text

    def begin_part(self, number, line):
        found = _PART.match(line)
        if not found:
            self.fail(number, f"'{line}' is not '@ FILE: FUNCTION' or '@ FILE: before FUNCTION'")
        self.part = Part(found.group(1), found.group(3).strip(), bool(found.group(2)), number)
        self.fault.parts.append(self.part)

    def key(self, number, line):
        found = _KEY.match(line)
        if self.part or not found or found.group(1) not in KEYS:
            self.fail(number, f"'{line}' is no key; keys are {', '.join(KEYS)}")
        self.last_key = found.group(1)
        self.fault.keys[self.last_key] = found.group(2)

    def code(self, number, line):
        hunks = self.part.hunks
        if line[0] == "-":
            if self.part.is_before:
                self.fail(number, "a part that stands before a function has lines of '+' alone")
            if not hunks or hunks[-1].new:
                hunks.append(Hunk())
            hunks[-1].old.append(line[1:])
            return
        if not hunks:
            if not self.part.is_before:
                self.fail(number, "'+' without '-': name the lines that it replaces")
            hunks.append(Hunk())
        hunks[-1].new.append(line[1:])


def read_faults(name, text):
    """The faults of one file, in its order."""
    return _Reader(name).read(text)
