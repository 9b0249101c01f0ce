"""DeepSpeed's hazards are found, and known. For 0.19.8: other releases have others."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest

from documents import STEP, backward, document, forward
from hazards import HAZARDS, RIGHT
from zeroproof_subject.subject import Comparison, Subject


def has_deepspeed():
    if importlib.util.find_spec("deepspeed") is None:
        return False
    return Subject("deepspeed", {"stage": 1}).versions()["deepspeed"].startswith("0.19.8")


@unittest.skipUnless(has_deepspeed(), "no DeepSpeed 0.19.8")
class DeepSpeedTest(unittest.TestCase):
    def compare(self, stage, programs):
        comparison = Comparison(Subject("deepspeed", {"stage": stage}))
        self.addCleanup(comparison.end)
        return [comparison.run(program) for program in programs]

    def test_hazards_differ_and_are_known(self):
        for stage in range(4):
            hazards = [(name, it) for name, stages, it in HAZARDS if stage in stages]
            verdicts = self.compare(stage, [it for _, it in hazards])
            for (name, _), verdict in zip(hazards, verdicts, strict=True):
                with self.subTest(stage=stage, hazard=name):
                    self.assertIsNotNone(verdict.known, verdict.difference)
                    self.assertEqual(verdict.known.id, f"deepspeed.{name}")

    def test_a_script_of_16_bit_parameters_shows_the_difference(self):
        config = {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "float32"}}
        kept = backward("g", retain_graph=True)
        comparison = Comparison(Subject("deepspeed", {"stage": 1}))
        self.addCleanup(comparison.end)
        body = [forward("g"), kept, backward("g"), STEP]
        text = comparison.script(document(ranks=1, config=config, body=body))
        self.assertIn("a.backward(g)\n", text)
        once = text.replace("    a.backward(g)\n", "").replace("[12.0, 4.0]", "[6.0, 2.0]")
        for script, code, printed in ((text, 1, "[18.0, 6.0]"), (once, 0, "as plain PyTorch")):
            with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
                file.write(script)
                file.flush()
                done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(printed, done.stdout + done.stderr)

    def test_parts_of_a_forward_may_stand_in_one(self):
        for stage in range(4):
            statements = Subject("deepspeed", {"stage": stage}).capabilities()["statements"]
            for part, member in (("hook", "hooks"), ("skip", "skips")):
                self.assertEqual(part in statements, member in statements["forward"], part)

    def test_other_programs_train_as_plain_pytorch(self):
        for stage in range(4):
            verdicts = self.compare(stage, RIGHT)
            self.assertEqual([it.difference for it in verdicts], [None] * len(RIGHT), stage)


if __name__ == "__main__":
    unittest.main()
