"""What `zeroproof replay` says of a folder of traces, in one word and a few lines."""

import json
import re
import subprocess
from dataclasses import dataclass, field


@dataclass
class Verdict:
    """clean or accused (a healthy job); named, wrong or silent (a mistake); unread."""

    word: str = ""
    defects: list = field(default_factory=list)
    hazards: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    falsified: list = field(default_factory=list)
    why: str = ""

    def text(self):
        """As printed in a row."""
        words = [self.word]
        for label in ("defects", "hazards", "notes", "falsified"):
            if getattr(self, label):
                words.append(f"{label} {', '.join(getattr(self, label))}")
        return "; ".join([*words, *([self.why] if self.why else [])])

    def as_dict(self):
        """As JSON."""
        return {
            "verdict": self.word,
            "defects": self.defects,
            "hazards": self.hazards,
            "notes": self.notes,
            "falsified": self.falsified,
            "why": self.why,
        }


def judge(command, folder, expectation):
    """Reads a folder; `expectation` is a pattern of what a mistake's finding must say."""
    ended = subprocess.run(
        [*command.split(), "replay", "--json", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    try:
        return verdict_of(json.loads(ended.stdout), expectation)
    except ValueError:
        line = (ended.stderr.strip().splitlines() or ["no output"])[-1]
        return Verdict(word="unread", why=f"exit {ended.returncode}: {line[:200]}")


def verdict_of(document, expectation):
    """The word for a document of `replay --json`."""
    return Verdict(word="read")
