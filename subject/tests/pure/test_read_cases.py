"""What `compare` reads: one document, programs by line, cases by line."""

import json
import os
import tempfile
import unittest

from zeroproof_subject.__main__ import read_cases

PROGRAM = {"schema": "zeroproof.program/1", "body": []}


class ReadCases(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "programs")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return list(read_cases(path))

    def test_a_document_is_one_case(self):
        self.assertEqual(self.read(json.dumps(PROGRAM, indent=1) + "\n"), [{"case": 0, "program": PROGRAM}])

    def test_lines_are_programs_or_cases(self):
        case = {"case": 7, "program": PROGRAM}
        self.assertEqual(self.read(f"{json.dumps(PROGRAM)}\n{json.dumps(case)}\n"), [{"case": 0, "program": PROGRAM}, case])


    def test_a_case_says_what_the_engine_must_refuse(self):
        case = {"case": 7, "program": PROGRAM, "refusals": {"body/0": "x"}}
        (read,) = self.read(json.dumps(case) + "\n")
        self.assertEqual(read["program"], {**PROGRAM, "refusals": {"body/0": "x"}})


if __name__ == "__main__":
    unittest.main()
