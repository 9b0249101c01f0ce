"""A finding as a script of its own."""

import os
import subprocess
import sys
import tempfile
import unittest

from documents import STEP, backward, document, forward
from zeroproof_subject.subject import Comparison, Subject

TWO_FORWARDS = [forward("g1"), forward("g2"), backward("g2"), backward("g1"), STEP]
MANY_MODULES = [
    {"name": "l0", "linear": {"inputs": 2, "outputs": 3, "has_bias": True}},
    {"name": "l1", "checkpoint": {"is_reentrant": False, "body": [{"name": "l2", "custom": {}}]}},
    {"name": "l3", "shared": {"module": "l0"}},
    {"name": "l4", "tied": {"module": "l2"}},
    {"name": "l5", "sequential": {"body": [{"name": "l6", "own_weight": {"elements": 2}}]}},
    {"name": "l7", "external_use": {"module": "l0"}},
    {"name": "l8", "unused": {"body": [{"name": "l9", "custom": {}}]}},
]


def run(text):
    """The script's exit code and what it prints, without this package on the path."""
    environment = {key: it for key, it in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "finding.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(
            [sys.executable, path], env=environment, capture_output=True, text=True, timeout=600
        )
    return done.returncode, done.stdout + done.stderr


class ScriptTest(unittest.TestCase):
    def setUp(self):
        self.comparison = Comparison(Subject("ddp", {}))
        self.addCleanup(self.comparison.end)

    def test_a_script_shows_the_difference(self):
        text = self.comparison.script(document(ranks=2, body=TWO_FORWARDS))
        self.assertNotIn("import zeroproof", text)
        self.assertLessEqual(len(text.splitlines()), 65)
        code, printed = run(text)
        self.assertEqual(code, 1, printed)
        self.assertIn("l0.weight is", printed)
        # Without the second backward the gradients are right, and differ from the script's numbers.
        code, printed = run(text.replace("    g1.backward()\n", ""))
        self.assertEqual(code, 1, printed)

    def test_all_modules_compute_in_a_script_what_they_compute_here(self):
        text = self.comparison.script(document(ranks=2, modules=MANY_MODULES, body=TWO_FORWARDS))
        # In an order that DDP can do, the script has the numbers of plain PyTorch.
        swapped = text.replace(
            'g2 = a(torch.zeros(2), f"0/a/1/{rank}/")\n    g2.backward()\n    g1.backward()',
            'g1.backward()\n    g2 = a(torch.zeros(2), f"0/a/1/{rank}/")\n    g2.backward()',
        )
        self.assertNotEqual(text, swapped)
        code, printed = run(swapped)
        self.assertEqual((code, printed.splitlines()[-1]), (0, "as plain PyTorch"), printed)

    def test_a_program_that_does_not_differ_has_none(self):
        body = [forward("g1"), backward("g1"), STEP]
        self.assertIsNone(self.comparison.script(document(ranks=2, body=body)))


if __name__ == "__main__":
    unittest.main()
