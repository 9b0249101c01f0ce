"""Programs of public reports differ on the release that they were reported of."""

import json
import re
import unittest
from pathlib import Path

from zeroproof_subject import engines
from zeroproof_subject.subject import Comparison, Subject

FOLDER = Path(__file__).resolve().parents[1] / "public_issues"
ROWS = json.loads((FOLDER / "index.json").read_text())


# Whose release a row names; of the others it is PyTorch.
PACKAGES = {"deepspeed": "deepspeed", "megatron": "megatron-core"}


def is_here(row):
    """Whether the engine's release is installed."""
    name = PACKAGES.get(row["engine"], "torch")
    try:
        versions = engines.load(row["engine"]).versions()
    except ImportError:
        return False
    return versions[name].startswith(row["release"])


class PublicIssuesTest(unittest.TestCase):
    def verdict_of(self, row):
        comparison = Comparison(Subject(row["engine"], row.get("options", {})))
        self.addCleanup(comparison.end)
        return comparison.run(json.loads((FOLDER / row["program"]).read_text()))

    def test_each_shows_on_its_release(self):
        rows = [row for row in ROWS if is_here(row)]
        if not rows:
            self.skipTest("no release of the table is installed")
        for row in rows:
            with self.subTest(row["program"]):
                verdict = self.verdict_of(row)
                self.assertIsNotNone(verdict.difference, verdict.status)
                self.assertTrue(
                    re.search(row["signature"], verdict.difference.signature),
                    verdict.difference.signature,
                )


if __name__ == "__main__":
    unittest.main()
