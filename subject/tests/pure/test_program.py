"""Reading programs."""

import json
import unittest
from pathlib import Path

from zeroproof_subject.program import NotAProgram, parse

PUBLIC_ISSUES = Path(__file__).resolve().parents[1] / "public_issues"

DOCUMENT = {
    "schema": "zeroproof.program/1",
    "world": {"ranks": 2},
    "config": {"gradient_clipping": 0.0, "zero_optimization": {"stage": 1}},
    "models": [
        {
            "name": "m",
            "body": [
                {"name": "l0", "linear": {"inputs": 1, "outputs": 2}},
                {"name": "ck", "checkpoint": {"body": [{"name": "l1", "custom": {"shape": [3]}}]}},
            ],
            "heads": [[{"name": "h", "linear": {"inputs": 2, "outputs": 1}}]],
        }
    ],
    "engines": [{"name": "a", "model": "m"}],
    "body": [
        {"block": {"kind": "no_sync", "engine": "a", "body": [{"step": {"engine": "a"}}]}},
        {
            "forward": {
                "engine": "a",
                "as": "g",
                "hooks": [{"at": "gradient", "module": "l0", "body": [{"raise": {}}]}],
            }
        },
    ],
}


class ProgramTest(unittest.TestCase):
    def test_a_document_becomes_parts(self):
        program = parse(DOCUMENT)
        self.assertEqual((program.ranks, program.seed), (2, 0))
        names = [part.name for part in program.models["m"].parts()]
        self.assertEqual(names, ["l0", "ck", "l1", "h"])
        block, forward = program.body
        self.assertEqual((block.kind, block.body[0].kind), ("block", "step"))
        self.assertEqual(forward.hooks[0].body[0].kind, "raise")

    def test_what_is_left_out_has_its_default(self):
        program = parse(DOCUMENT)
        _, forward = program.body
        self.assertEqual((forward["mode"], forward["inputs_need_grad"]), ("train", False))
        checkpoint = program.models["m"].body[1]
        self.assertTrue(checkpoint["is_reentrant"])
        self.assertEqual(program.setting("zero_optimization/stage", 0), 1)
        self.assertEqual(program.setting("gradient_accumulation_steps", 1), 1)

    def test_what_is_no_program_is_refused(self):
        for document in ({}, {"schema": "zeroproof.program/2"}, {"schema": DOCUMENT["schema"]}):
            with self.subTest(document=document), self.assertRaises(NotAProgram):
                parse(document)

    def test_programs_of_public_reports_are_programs(self):
        rows = json.loads((PUBLIC_ISSUES / "index.json").read_text())
        there = {path.name for path in PUBLIC_ISSUES.glob("*.json")} - {"index.json"}
        self.assertEqual({row["program"] for row in rows}, there)
        for row in rows:
            with self.subTest(row["program"]):
                program = parse(json.loads((PUBLIC_ISSUES / row["program"]).read_text()))
                self.assertTrue(program.body and row["issue"] and row["release"])

    def test_only_a_world_with_callbacks_has_them(self):
        self.assertTrue(parse(DOCUMENT).has_callbacks)
        world = {"ranks": 2, "autograd": "no_callback"}
        self.assertFalse(parse({**DOCUMENT, "world": world}).has_callbacks)


if __name__ == "__main__":
    unittest.main()
