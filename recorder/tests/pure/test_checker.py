"""What the check of a trace refuses."""

import json
import unittest

from zeroproof_recorder.checker import TraceCheck

HEADER = {"rec": "header", "format": "hooktrace", "version": [1, 1]}
STEP = {"t": 1, "r": 0, "th": 0, "k": "opt.step", "gt": -1, "d": 0}
NUMBERS = {"rec": "numbers", "step": 0, "when": "before_step", "params": ["a", "b"]}
OPTIMIZER = {"rec": "optimizer", "id": 3, "params": ["a"]}
# Records after the header, and what is found in them.
CASES = [
    ([{"rec": "wrapper", "model": 0, "kind": "ddp"}], []),
    ([{"rec": "wrapper", "kind": "ddp"}], ["line 2: wrapper lacks model"]),
    ([OPTIMIZER, {**STEP, "optimizer": 3}], []),
    ([{**STEP, "optimizer": 3}], ["line 2: optimizer 3 was not declared"]),
    ([STEP], []),  # of an older recorder
    ([{"rec": "optimizer", "id": 3}], ["line 2: optimizer lacks params"]),
    ([{**NUMBERS, "grad_hash": [None, "00"], "param_norm": [1.0, "inf"]}], []),
    ([{**NUMBERS, "grad_hash": ["00"]}], ["line 2: numbers: grad_hash has not one entry a parameter"]),
    ([{**NUMBERS, "when": "now"}], ["line 2: numbers now: before_step or after_step"]),
    ([{"rec": "note", "observer": "x"}], ["line 2: note lacks text"]),
    ([{"rec": "of a later minor version"}], []),
]


def findings(header, records):
    events = 0
    for number, record in enumerate(records):
        if "k" in record:
            events += 1
            records[number] = {"rec": "ev", "lc": events, **record}
    end = {"rec": "end", "events": events, "records": len(records)}
    check = TraceCheck()
    check.read(json.dumps(record) for record in [header, *records, end])
    return check.findings


class CheckerTest(unittest.TestCase):
    def test_records(self):
        for records, expected in CASES:
            with self.subTest(records=records):
                self.assertEqual(findings(HEADER, list(records)), expected)

    def test_versions(self):
        for version, expected in (([1, 0], []), ([1, 7], []), ([2, 0], ["version [2, 0], not 1.x"])):
            with self.subTest(version=version):
                found = findings({**HEADER, "version": version}, [])
                self.assertEqual(found, [f"line 1: {words}" for words in expected])


if __name__ == "__main__":
    unittest.main()
