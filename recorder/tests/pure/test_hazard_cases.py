"""What recorder/hazards says of a case, and of a run that differs from its table."""

import sys
import unittest
from pathlib import Path

RECORDER = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(RECORDER / "hazards"), str(RECORDER / "jobs")]

import cases
from table import Case, differences, parse_case, table_of

SHOWN = Case("H3", "CONFIRMED", "stage 3", "2.0", "3.0")


class CaseTest(unittest.TestCase):
    def test_a_line_reads_back(self):
        self.assertEqual(parse_case(str(SHOWN)), SHOWN)
        self.assertIsNone(parse_case("H3 stage 3: something else"))

    def test_a_symptom_that_is_empty_or_right_fails(self):
        for observed, expected in (("", ""), ("", "3.0"), ("3.0", "3.0"), ("2.0", " ")):
            case = Case("H3", "CONFIRMED", "stage 3", observed, expected).checked()
            self.assertEqual(case.word, "fails", (observed, expected))
        self.assertEqual(SHOWN.checked(), SHOWN)

    def test_the_symptom_of_another_property_does_not_count(self):
        output = "observed  P1: 0 epilogues\nexpected  P1: one epilogue\nSYMPTOM\n"
        self.assertEqual(cases._case_of_property("H1", "export", output, "P12").word, "absent")
        shown = cases._case_of_property("H1", "export", output, "P1")
        self.assertEqual((shown.word, shown.observed), ("CONFIRMED", "0 epilogues"))

    def test_a_process_that_a_signal_ends_shows_what_was_announced(self):
        announced = Case("N7", "may crash", "stage 3", "SIGSEGV", "no error")
        self.assertEqual(cases._ended(announced, -11).word, "CONFIRMED")
        self.assertEqual(cases._ended(announced, 0).word, "fails")


class TableTest(unittest.TestCase):
    def test_a_release_has_a_table_of_its_own(self):
        path = table_of("DeepSpeed 0.19.8, torch 2.15.0, CPU, gloo")
        self.assertEqual(path.name, "deepspeed-0.19.8.txt")

    def test_what_is_new_gone_or_other_is_told(self):
        other = Case("H3", "absent", "stage 3", "3.0", "3.0")
        new = Case("H4", "CONFIRMED", "stage 1", "2.0", "3.0")
        self.assertEqual(differences([SHOWN], [SHOWN]), [])
        self.assertEqual(differences([SHOWN], [other]), [f"was:  {SHOWN}", f"now:  {other}"])
        self.assertEqual(differences([SHOWN], [SHOWN, new]), [f"new:  {new}"])
        self.assertEqual(differences([SHOWN, new], [SHOWN]), [f"gone: {new}"])
        self.assertEqual(differences([SHOWN, new], [SHOWN], is_whole=False), [])


if __name__ == "__main__":
    unittest.main()
