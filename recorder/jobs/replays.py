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
    unseen: list = field(default_factory=list)

    def text(self):
        """As printed in a row."""
        words = [self.word]
        for label in ("defects", "hazards", "notes", "falsified", "unseen"):
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
            "unseen": self.unseen,
        }


def observers_lost(folder):
    """Names of the observers that a note of a trace says are off, and kinds that were lost."""
    from zeroproof_recorder.checker import read_lines

    found = set()
    for path in sorted(folder.glob("*.jsonl.gz")):
        for line in read_lines(path):
            record = json.loads(line) if '"note"' in line else {}
            if record.get("rec") == "note" and record.get("observer"):
                found.add(record["observer"])
    return sorted(found)


def judge(command, folder, expectation):
    """Reads a folder; `expectation` is a pattern of what a mistake's finding must say."""
    verdict = _replay(command, folder, expectation)
    verdict.unseen = observers_lost(folder)
    return verdict


def _replay(command, folder, expectation):
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
    kinds = {gravity: [] for gravity in ("defect", "hazard", "note")}
    for answer in document["diagnosis"]:
        kinds.setdefault(answer["gravity"], []).append(answer["kind"])
    verdict = Verdict(
        defects=_counted(kinds["defect"]),
        hazards=_counted(kinds["hazard"]),
        notes=_counted(kinds["note"]),
        falsified=_counted(_falsified(document)),
    )
    said = [answer for answer in document["diagnosis"] if answer["gravity"] != "note"]
    if not expectation:
        accused = verdict.defects or verdict.falsified or document["summary"]["mismatched"]
        verdict.word = "accused" if accused else "clean"
        verdict.why = _first(document["diagnosis"], "defect") if accused else ""
        return verdict
    named = [answer for answer in said if re.search(expectation, _words(answer), re.S)]
    wrong = [answer for answer in said if answer["gravity"] == "defect" and answer not in named]
    verdict.word = "named" if named else "wrong" if wrong else "silent"
    verdict.why = " ".join((named or wrong or [{"what": ""}])[0]["what"].split())[:160]
    return verdict


def _words(answer):
    fields = ("gravity", "kind", "what", "parameter", "collective", "look_at")
    return " ".join(str(answer.get(name) or "") for name in fields)


def _first(answers, gravity):
    return next((" ".join(a["what"].split())[:200] for a in answers if a["gravity"] == gravity), "")


def _falsified(document):
    for trace in document["traces"]:
        yield from {f"format {finding['rule']}" for finding in trace["structure"]["findings"]}
        levels = trace.get("levels") or {}
        if (levels.get("state") or {}).get("first_mismatch"):
            yield f"state: {levels['state']['first_mismatch']['text'][:120]}"
        properties = levels.get("properties") or {}
        yield from {finding["id"] for finding in properties.get("falsified", ())}


def _counted(words):
    words = list(words)
    return [
        word if words.count(word) == 1 else f"{word} x{words.count(word)}"
        for word in dict.fromkeys(words)
    ]
