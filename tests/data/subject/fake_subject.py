#!/usr/bin/env python3
"""A subject without PyTorch: answers the lines of the protocol as its engine's name says.

It stands in for a Python: zeroproof calls it with `-m zeroproof_subject serve --engine NAME`.
"""

import json
import os
import sys
import time
from pathlib import Path

CAPABILITIES = Path(__file__).parent.parent / "capabilities/small.json"


def kinds_of(body):
    """Of all statements, in their order."""
    return [kind for statement in body for kind in statement]


def difference_of(program):
    """This engine loses gradients where a zero_grad stands before a step."""
    kinds = kinds_of(program["body"])
    for index, kind in enumerate(kinds):
        if kind == "step" and "zero_grad" in kinds[:index]:
            text = f"m.l0.weight is [0], not [{len(kinds)}]"
            return {"rank": 0, "at": f"/{index}/step", "what": "gradients", "text": text}
    return None


def option(name):
    """The value that follows a word of the command line."""
    return sys.argv[sys.argv.index(name) + 1]


class Subject:
    """Each method is an engine: it gets a program and returns an answer without its id."""

    def __init__(self):
        self.runs = 0
        self.request = {}

    def equal(self, _):
        return {"status": "equal", "seconds": 0.5}

    def differs(self, program):
        difference = difference_of(program)
        return {"status": "differs" if difference else "equal", "difference": difference}

    def known(self, program):
        answer = self.differs(program)
        if answer["difference"]:
            known = {"name": "H4", "verdict": "defect", "issue": "DeepSpeed #7992"}
            answer.update(signature="lost gradients", known=known)
        return answer

    def flaky(self, program):
        return self.differs(program) if self.runs % 2 == 1 else self.equal(program)

    def dies(self, program):
        if difference_of(program):
            print("Fatal: out of patience", file=sys.stderr, flush=True)
            os._exit(9)
        return self.equal(program)

    def hangs(self, program):
        if difference_of(program):
            time.sleep(600)
        return self.equal(program)

    def garbage(self, _):
        return "Warning: no line of the protocol"

    def doubtful(self, program):
        """The same signature with and without a known cause."""
        answer = self.differs(program)
        if answer["difference"]:
            answer["signature"] = "lost gradients"
            if "retain_graph" in json.dumps(program):
                answer["known"] = "kept graphs"
        return answer

    def skips(self, program):
        """As the engine `known`; what may show it is not run, where the request says so."""
        kinds = kinds_of(program["body"])
        if self.request.get("skip_known") and "zero_grad" in kinds:
            return {"status": "skipped", "known": {"name": "H4"}}
        return self.known(program)

    def refuses(self, _):
        return {"status": "refused", "detail": "no program: KeyError('x')"}


def main():
    """Returns the exit code."""
    if sys.argv[3] == "script":
        print("# a script of", option("--engine"))
        return 0
    engine = option("--engine")
    if engine == "missing":
        print("ModuleNotFoundError: No module named 'zeroproof_subject'", file=sys.stderr)
        return 1
    hello = {
        "zeroproof_subject": 2 if engine == "newer" else 1,
        "engine": engine,
        "options": {},
        "versions": {"fake": "1.0"},
        "capabilities": json.loads(CAPABILITIES.read_text(encoding="utf-8")),
    }
    if path := os.environ.get("FAKE_SUBJECT_PID_FILE"):
        Path(path).write_text(str(os.getpid()), encoding="utf-8")
    print(json.dumps(hello), flush=True)
    subject = Subject()
    for line in sys.stdin:
        request = json.loads(line)
        subject.runs += 1
        subject.request = request
        answer = getattr(subject, engine)(request["compare"])
        if isinstance(answer, dict):
            answer = json.dumps({"id": request["id"], **answer})
        print(answer, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
