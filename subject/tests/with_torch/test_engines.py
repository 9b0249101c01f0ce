"""Engines against plain PyTorch, on drawn programs and on small ones."""

import json
import unittest
from pathlib import Path

from documents import STEP, backward, document, forward
from zeroproof_subject.engine import Truth
from zeroproof_subject.program import parse
from zeroproof_subject.rank import run_replicas
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


def raising(value):
    return forward(value, hooks=[{"at": "gradient", "module": "l0", "body": [{"raise": {}}]}])


ZERO_GRAD = {"zero_grad": {"engine": "a"}}
FAILED = [raising("g1"), {"catch": {"body": [backward("g1")]}}]
RETRIED = [forward("g2"), backward("g2"), STEP]


class RefusalTest(unittest.TestCase):
    """What an engine must refuse, and plain PyTorch does not do."""

    def test_an_error_is_due(self):
        misuse = backward("no value of the program")
        body = [forward("g"), misuse, backward("g"), STEP]
        (verdict,) = verdicts("ddp", {}, [{**document(body=body), "refusals": {"body/1": "misuse"}}])
        self.assertEqual((verdict.status, verdict.difference), ("equal", None))

    def test_what_is_not_refused_differs(self):
        body = [forward("g"), backward("g", retain_graph=True), backward("g"), STEP]
        (verdict,) = verdicts("ddp", {}, [{**document(body=body), "refusals": {"body/2": "misuse"}}])
        self.assertEqual(verdict.difference.signature, "refusal at backward after backward: not refused")
        self.assertEqual(verdict.difference.text, "misuse is [0], not [1]")


class TruthTest(unittest.TestCase):
    """What plain PyTorch sees."""

    def seen(self, body, truth=Truth(), **members):
        document_of_it = document(ranks=2, body=body, **members)
        return run_replicas(parse(document_of_it), truth)[0]

    def gradients(self, *arguments, **members):
        seen = self.seen(*arguments, **members)
        return [it["values"] for it in seen if it["what"] == "gradients"]

    def test_a_failed_backward_that_zero_grad_follows_is_as_if_it_had_not_been(self):
        (found,) = self.gradients([*FAILED, ZERO_GRAD, *RETRIED])
        (expected,) = self.gradients([forward("g1"), *RETRIED])
        self.assertEqual(found, expected)

    def test_what_a_failed_backward_left_is_not_judged(self):
        seen = self.seen([*FAILED, *RETRIED])
        self.assertEqual([it["what"] for it in seen], ["loss", "loss"])

    def test_a_backward_of_the_tensor_is_divided_where_engines_do_so(self):
        config = {"gradient_accumulation_steps": 2}
        body = [forward("g1"), {"backward": {"value": "g1"}}, STEP, STEP]
        (whole,) = self.gradients(body, config=config)
        (half,) = self.gradients(body, Truth(divides_tensor_backward=True), config=config)
        name = "body.l0.linear.weight"
        self.assertEqual([it / 2 for it in whole[name]], half[name])

    def test_a_module_can_be_called_alone(self):
        call = {"call_module": {"engine": "a", "module": "l0", "as": "g1"}}
        (found,) = self.gradients([call, backward("g1"), STEP])
        self.assertTrue(all(found["body.l0.linear.weight"]))

    def test_numbers_of_16_bit_parameters_are_smaller(self):
        body = [forward("g1"), backward("g1"), STEP]
        (wide,) = self.gradients(body, modules=[{"name": "l0", "custom": {"shape": [64]}}])
        config = {"bf16": {"enabled": True}}
        modules = [{"name": "l0", "custom": {"shape": [64]}}]
        (narrow,) = self.gradients(body, config=config, modules=modules)
        self.assertGreater(max(wide["body.l0.weight"]), 3)
        self.assertLessEqual(max(narrow["body.l0.weight"]), 3)


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
