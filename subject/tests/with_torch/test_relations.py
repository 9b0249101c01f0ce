"""A program and its twins on one engine."""

import copy
import unittest

from documents import STEP, backward, document, forward, observation
from zeroproof_subject.engine import View
from zeroproof_subject.pool import RunResult
from zeroproof_subject.program import parse
from zeroproof_subject.relations import (
    Relation,
    Relations,
    always,
    disagreement,
    has_checkpoint,
    violation,
    with_frozen_parameter,
    with_other_checkpoints,
    with_small_buckets,
)
from zeroproof_subject.subject import Subject

CHECKPOINT = [
    {"name": "c", "checkpoint": {"body": [{"name": "l0", "linear": {"inputs": 1, "outputs": 1}}]}}
]
RIGHT = document(ranks=2, modules=CHECKPOINT, body=[forward("g"), backward("g"), STEP])
TWO_GRAPHS = document(
    ranks=2, body=[forward("g"), forward("h"), backward("h"), backward("g"), STEP]
)


def result(*ranks, status="ran"):
    return RunResult(status, list(ranks), 0.1)


def gradients(*numbers):
    return [observation("body/2/step", "gradients", {"w": list(numbers)})]


class RelationsTest(unittest.TestCase):
    def test_what_violates_a_relation(self):
        as_it_is = Relation("the same", always)
        others = Relation("others", always, view=View(shift=1, loss_factor=64.0))
        one = result(gradients(1.0), gradients(2.0))
        for relation, twin, is_violated in (
            (as_it_is, one, False),
            (as_it_is, result(gradients(1.0), gradients(3.0)), True),
            (as_it_is, result(gradients(1.0), None, status="crash"), True),
            (as_it_is, result(gradients(1.0), []), True),
            (others, result(gradients(128.0), gradients(64.0)), False),
            (others, result(gradients(64.0), gradients(128.0)), True),
        ):
            self.assertEqual(bool(violation(relation, one, twin)), is_violated, twin)

    def test_names_of_one_alone_are_not_compared(self):
        twin = result([observation("body/2/step", "gradients", {"w": [1.0], "v": [2.0]})])
        self.assertEqual(violation(Relation("x", always), result(gradients(1.0)), twin), "")

    def test_ranks_have_to_agree(self):
        self.assertEqual(disagreement(result(gradients(1.0), gradients(1.0))), "")
        self.assertIn("disagree", disagreement(result(gradients(1.0), gradients(2.0))))
        losses = [[observation("body/0/forward", "loss", {"": [n]})] for n in (1.0, 2.0)]
        self.assertEqual(disagreement(result(*losses)), "")

    def test_twins_are_programs(self):
        self.assertTrue(has_checkpoint(parse(RIGHT)))
        self.assertFalse(has_checkpoint(parse(TWO_GRAPHS)))
        for change in (with_frozen_parameter, with_other_checkpoints, with_small_buckets):
            twin = change(document(ranks=2, modules=copy.deepcopy(CHECKPOINT)))
            parse(twin)
            self.assertNotEqual(twin, document(ranks=2, modules=CHECKPOINT), change.__name__)

    def test_ddp_violates_them_where_a_backward_uses_up_what_a_forward_armed(self):
        relations = Relations(Subject("ddp", {}))
        self.addCleanup(relations.end)
        self.assertEqual(relations.run(TWO_GRAPHS, 2), ["ranks agree"])
        # A reentrant checkpoint is a known defect of its own.
        self.assertEqual(relations.run(RIGHT, 1), ["the other checkpoint"])


if __name__ == "__main__":
    unittest.main()
