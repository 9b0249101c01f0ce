"""Findings that were judged before."""

import json
import unittest
from pathlib import Path

from documents import STEP, backward, document, forward
from zeroproof_subject import engines
from zeroproof_subject.compare import Difference
from zeroproof_subject.known import (
    VERDICTS,
    Entry,
    Known,
    WrongEntry,
    entries_of,
    entry_from,
    has_version,
)
from zeroproof_subject.program import parse

PROGRAM = parse(
    document(ranks=2, body=[forward("g"), forward("h"), backward("h"), backward("g"), STEP])
)
SIGNATURE = "gradients at step after backward: ranks disagree"
DIFFERENCE = Difference(0, "body/4/step", "gradients", "w is 1, not 2", SIGNATURE, "a")


class KnownTest(unittest.TestCase):
    def test_all_that_an_entry_asks_for_has_to_hold(self):
        cases = [
            ({}, True),
            ({"signatures": ["^gradients", "^loss"]}, True),
            ({"signatures": ["^loss"]}, False),
            ({"features": ["two open forwards"]}, True),
            ({"features": ["two open forwards", "fp16"]}, False),
            ({"any_feature": ["two open forwards", "fp16"]}, True),
            ({"any_feature": ["fp16"]}, False),
            ({"without": ["several ranks"]}, False),
        ]
        for members, is_known in cases:
            with self.subTest(**members):
                entry = entry_from({"id": "x", "verdict": "defect", "text": "", **members}, "here")
                self.assertEqual(Known([entry]).entry_of(PROGRAM, DIFFERENCE) is entry, is_known)

    def test_versions_are_ranges(self):
        for version, wanted, expected in (
            ("0.19.8", ">=0.19.6", True),
            ("0.19.10", ">=0.19.6,<0.19.9", False),
            ("2.15.0+cu132", "<=2.15.0", True),
            ("0.18.9", ">0.18.9", False),
        ):
            self.assertEqual(has_version(version, wanted), expected, (version, wanted))

    def test_entries_are_of_versions_and_options(self):
        entry = Entry("x", "limit", "", versions={"torch": ">=2.4"}, options={"stage": [1, 2]})
        self.assertTrue(entry.is_of({"stage": 2}, {"torch": "2.15.0"}))
        self.assertFalse(entry.is_of({"stage": 3}, {"torch": "2.15.0"}))
        self.assertFalse(entry.is_of({"stage": 2}, {"torch": "2.3.0"}))
        self.assertFalse(entry.is_of({"stage": 2}, {}))

    def test_programs_that_may_show_an_entry(self):
        for features, expected in (
            (["ever two open forwards"], True),
            (["two open forwards"], True),
            (["fp16"], False),
            ([], False),
        ):
            entry = Entry("x", "defect", "", any_feature=tuple(features))
            self.assertEqual(Known([entry]).shown_by(PROGRAM) is entry, expected, features)

    def test_a_configuration_that_an_entry_is_without_cannot_show_it(self):
        for without, expected in ((["one rank"], True), (["several ranks"], False)):
            entry = Entry("x", "defect", "", any_feature=("two open forwards",), without=without)
            self.assertEqual(Known([entry]).shown_by(PROGRAM) is entry, expected, without)

    def test_smallest_programs_are_named_by_the_entry_of_their_cause(self):
        for line in (Path(__file__).parents[1] / "judged.jsonl").read_text().splitlines():
            case = json.loads(line)
            with self.subTest(entry=case["entry"], signature=case["signature"]):
                known = Known.of(case["engine"], case["options"], case["versions"])
                seen = Difference(0, case["at"], "", "", case["signature"])
                found = known.entry_of(parse(case["program"]), seen)
                self.assertEqual(found and found.id, case["entry"])

    def test_the_files_of_the_package_can_be_read(self):
        for engine in engines.MODULES:
            entries = entries_of(engine)
            self.assertEqual(len({it.id for it in entries}), len(entries))
            self.assertTrue(all(it.id.startswith(engine + ".") for it in entries))
            self.assertTrue(all(it.verdict in VERDICTS and it.text for it in entries))
        self.assertTrue(entries_of("ddp"))
        self.assertEqual(entries_of("my_engine:make"), [])

    def test_a_wrong_entry_is_named(self):
        for more in ({"verdict": "perhaps"}, {"verdict": "limit", "feature": []}):
            with self.subTest(**more), self.assertRaisesRegex(WrongEntry, "here: x"):
                entry_from({"id": "x", "text": "", **more}, "here")


if __name__ == "__main__":
    unittest.main()
