"""The lines that a subject reads and writes."""

import json
import unittest

from documents import document
from zeroproof_subject.known import Entry
from zeroproof_subject.program import parse
from zeroproof_subject.protocol import VERSION, answers
from zeroproof_subject.tally import Tally


class Result:
    def document(self):
        return {"status": "ran", "ranks": [[{"values": (float("nan"), float("-inf"), 1.5)}]]}


class FakeSubject:
    class choice:
        name = "fake"

    options = {"stage": 2}

    def versions(self):
        return {"fake": "1"}

    def capabilities(self):
        return {"schema": "zeroproof.capabilities/1"}

    def run(self, program):
        parse(program)
        return Result()

    def compare(self, program, skip_known=False):
        parse(program)
        if program.get("refusals"):
            return Verdict("differs")
        return Verdict("skipped" if skip_known else "equal")


# A line, and what the answer to it has.
LINES = [
    (json.dumps({"id": 7, "run": document()}), {"id": 7, "status": "ran"}),
    (json.dumps({"id": 6, "compare": document()}), {"id": 6, "status": "equal"}),
    (
        json.dumps({"id": 5, "compare": document(), "skip_known": True}),
        {"id": 5, "status": "skipped"},
    ),
    (
        json.dumps({"id": 4, "compare": document(), "refusals": {"body/0": "x"}}),
        {"id": 4, "status": "differs"},
    ),
    ("{", {"status": "refused"}),
    (json.dumps({"id": 8}), {"id": 8, "status": "refused"}),
    (json.dumps({"id": 9, "run": {"schema": "other"}}), {"id": 9, "status": "refused"}),
]


class ProtocolTest(unittest.TestCase):
    def test_each_line_has_an_answer(self):
        hello, *answered = answers(FakeSubject(), [line for line, _ in LINES])
        self.assertEqual((hello["zeroproof_subject"], hello["engine"]), (VERSION, "fake"))
        self.assertEqual(hello["capabilities"]["schema"], "zeroproof.capabilities/1")
        self.assertEqual(len(answered), len(LINES))
        for (_, expected), answer in zip(LINES, answered, strict=True):
            self.assertEqual(expected, {key: answer.get(key) for key in expected})

    def test_numbers_that_json_lacks_are_texts(self):
        _, answer = answers(FakeSubject(), [LINES[0][0]])
        text = json.dumps(answer, allow_nan=False)
        self.assertEqual(["NaN", "-Infinity", 1.5], json.loads(text)["ranks"][0][0]["values"])

    def test_an_end_ends_it(self):
        lines = ["\n", json.dumps({"end": True}), LINES[0][0]]
        self.assertEqual(len(list(answers(FakeSubject(), lines))), 1)


class Difference:
    signature = "gradients at step"

    def document(self):
        return {}


class Verdict:
    def __init__(self, status, difference=None, known=None):
        self.status, self.seconds = status, 0.5
        self.difference, self.known = difference, known

    def document(self):
        return {"status": self.status}


class TallyTest(unittest.TestCase):
    def test_findings_are_grouped_and_the_smallest_kept(self):
        tally = Tally()
        for number, size in ((1, 30), (2, 5), (3, 10)):
            case = {"case": number, "program": "x" * size}
            tally.add(case, Verdict("differs", Difference()))
        tally.add({"case": 4, "program": ""}, Verdict("equal"))
        finding = tally.findings["", "gradients at step"]
        self.assertEqual((finding["cases"], finding["case"]["case"]), ([1, 2, 3], 2))
        self.assertIn("4 programs: 3 differs, 1 equal", tally.text())

    def test_known_findings_are_apart(self):
        tally = Tally()
        entry = Entry("a.known", "limit", "so it is")
        for number, known in ((1, entry), (2, None)):
            tally.add({"case": number, "program": ""}, Verdict("differs", Difference(), known))
        self.assertEqual(len(tally.findings), 2)
        text = tally.text()
        self.assertLess(text.index("new:"), text.index("known:"))
        self.assertIn("a.known, limit", text)


if __name__ == "__main__":
    unittest.main()
