"""The runner of jobs: what it makes of scripts, of endings and of a reader's document."""

import unittest

from pairs import Ending, Run, _difference, _last_exception, _steady
from replays import verdict_of
from scripts import find_jobs


def document(*answers, mismatched=0, falsified=(), format_rules=()):
    """What `replay --json` prints, as far as a verdict needs it."""
    trace = {
        "structure": {"findings": [{"rule": rule} for rule in format_rules]},
        "levels": {"properties": {"falsified": [{"id": word} for word in falsified]}},
    }
    diagnosis = [
        {"kind": kind, "gravity": gravity, "what": what} for gravity, kind, what in answers
    ]
    return {"summary": {"mismatched": mismatched}, "traces": [trace], "diagnosis": diagnosis}


# Document, what a mistake should be called, the word.
VERDICTS = [
    (document(), "", "clean"),
    (document(("note", "rank.missing", "no file of rank 3")), "", "clean"),
    (document(("hazard", "depth.left", "depth 1")), "", "clean"),
    (document(("defect", "collective.missing", "rank 1 left out")), "", "accused"),
    (document(falsified=["P2"]), "", "accused"),
    (document(format_rules=["collective.number"]), "", "accused"),
    (document(mismatched=1), "", "accused"),
    (document(("defect", "ddp.no_reduction", "never reduced")), "never reduced", "named"),
    (document(("hazard", "grads.kept", "no zero_grad")), "zero_grad", "named"),
    (document(("defect", "bucket.left", "a bucket")), "zero_grad", "wrong"),
    (document(("hazard", "bucket.left", "a bucket")), "zero_grad", "silent"),
    (document(("note", "ended", "zero_grad")), "zero_grad", "silent"),
]

# A line of stderr, the same from another run.
SAME_ENDINGS = [
    (
        "RuntimeError: [/pytorch/gloo/pair.cc:561] Connection closed by peer [127.0.0.1]:15049. A",
        "[rank0]: RuntimeError: [/x/pair.cc:534] Connection reset by peer [127.0.0.1]:29110",
    ),
    ("ValueError: bad tensor at 0x7f00aa", "[rank1]: ValueError: bad tensor at 0x7f11bb"),
]


class JobsTest(unittest.TestCase):
    def test_verdicts(self):
        for found, expectation, word in VERDICTS:
            with self.subTest(found=found, expectation=expectation):
                self.assertEqual(verdict_of(found, expectation).word, word)

    def test_endings_that_are_the_same(self):
        for one, other in SAME_ENDINGS:
            self.assertEqual(_last_exception(one), _last_exception(other))
        self.assertNotEqual(_last_exception("ValueError: a"), _last_exception("ValueError: b"))
        self.assertNotEqual(_last_exception("ValueError: a"), _last_exception("KeyError: a"))
        self.assertEqual(_last_exception("UserWarning: not an ending"), "")
        self.assertEqual(_steady("loss 1.5\nzeroproof-recorder: 3 events"), "loss 1.5")

    def test_a_difference_names_rank_and_what(self):
        def run(code=0, output="BITS a", exception=""):
            return Run([Ending(0, "BITS a", ""), Ending(code, output, exception)], 1.0)

        self.assertEqual(_difference(run(), run()), "")
        self.assertIn("rank 1 code: 0 -> 1", _difference(run(), run(code=1)))
        self.assertIn("rank 1 output", _difference(run(), run(output="BITS b")))
        self.assertIn("rank 1 exception", _difference(run(), run(exception="KeyError: 1")))

    def test_scripts_say_what_they_are(self):
        healthy, mistakes = find_jobs("healthy"), find_jobs("mistakes")
        self.assertGreaterEqual(len({job.script for job in healthy}), 28)
        self.assertGreaterEqual(len({job.script for job in mistakes}), 22)
        for job in (*healthy, *mistakes):
            with self.subTest(job=job.name):
                self.assertGreater(len(job.purpose), 20)
                self.assertIn(job.world, (2, 4))
                self.assertEqual(bool(job.expectation), job.kind == "mistakes")
        names = [job.name for job in (*healthy, *mistakes)]
        self.assertEqual(len(names), len(set(names)))

    def test_jobs_are_found_by_name_and_sorted_by_what_they_import(self):
        found = find_jobs("healthy", "accelerate*-ddp,zero_plain-[12],deepspeed_pipeline,func_grad")
        names = ["func_grad", "deepspeed_pipeline", "zero_plain-1", "zero_plain-2"]
        self.assertEqual([job.name for job in found], [*names, "accelerate_accumulate-ddp"])
        needs = ["none", "deepspeed", "deepspeed", "deepspeed", "others"]
        self.assertEqual([job.needs for job in found], needs)


if __name__ == "__main__":
    unittest.main()
