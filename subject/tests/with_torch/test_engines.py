"""Engines against plain PyTorch, on drawn programs and on small ones."""

import json
import unittest
from pathlib import Path

from documents import STEP, backward, document, forward
from zeroproof_subject.subject import Comparison, Subject

PROGRAMS = Path(__file__).resolve().parents[1] / "programs.jsonl"
LIMIT = 600  # seconds: machines that run tests are crowded


def verdicts(name, options, programs):
    """Of each program."""
    comparison = Comparison(Subject(name, options))
    try:
        return [comparison.run(program) for program in programs]
    finally:
        comparison.end()


def drawn():
    return [json.loads(line)["program"] for line in PROGRAMS.read_text().splitlines()]


TWO_BACKWARDS = document(
    ranks=2,
    modules=[
        {"name": "l0", "linear": {"inputs": 2, "outputs": 3, "has_bias": True}},
        {"name": "l1", "checkpoint": {"body": [{"name": "l2", "custom": {"shape": [3]}}]}},
        {"name": "l3", "shared": {"module": "l0"}},
        {"name": "l4", "tied": {"module": "l2"}},
        {"name": "l5", "unused": {"body": [{"name": "l6", "custom": {"shape": [2]}}]}},
    ],
    body=[
        forward("g1", inputs_need_grad=True),
        backward("g1"),
        forward("g2", inputs_need_grad=True),
        backward("g2"),
        STEP,
    ],
)


class EnginesTest(unittest.TestCase):
    def test_the_example_engine_trains_as_plain_pytorch(self):
        programs = [*drawn(), TWO_BACKWARDS]
        statuses = [it.status for it in verdicts("my_engine:make", {}, programs)]
        self.assertEqual(statuses, ["equal"] * len(programs))

    def test_drawn_programs_find_its_bug(self):
        found = verdicts("my_engine:make", {"overwrites": True}, drawn())
        differing = [it for it in found if it.status == "differs"]
        self.assertGreaterEqual(len(differing), 3)
        self.assertEqual({it.difference.what for it in differing}, {"gradients"})

    def test_ddp_trains_one_backward_a_step(self):
        program = document(ranks=2, body=[forward("g1"), backward("g1"), STEP])
        (verdict,) = verdicts("ddp", {}, [program])
        self.assertEqual(verdict.status, "equal", verdict)

    def test_ddp_loses_a_gradient_of_two_forwards(self):
        body = [forward("g1"), forward("g2"), backward("g2"), backward("g1"), STEP]
        (verdict,) = verdicts("ddp", {}, [document(ranks=2, body=body)])
        self.assertEqual((verdict.status, verdict.difference.what), ("differs", "gradients"))


if __name__ == "__main__":
    unittest.main()
