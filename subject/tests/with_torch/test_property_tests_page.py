"""docs/tutorial/property_tests.md, followed step by step."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SUBJECT = Path(__file__).resolve().parents[2]
PAGE = SUBJECT.parent / "docs" / "tutorial" / "property_tests.md"
ZEROPROOF = os.environ.get("ZP_ZEROPROOF", "")


def blocks(text):
    """(language, text) of each block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@unittest.skipUnless(importlib.util.find_spec("pytest"), "pytest is not installed")
@unittest.skipUnless(ZEROPROOF, "ZP_ZEROPROOF names no zeroproof")
class PageTest(unittest.TestCase):
    def follow(self, folder, block):
        """Runs the command of a block: a line that begins with each line below it is printed."""
        command, *expected = block.splitlines()
        path = os.pathsep.join([str(SUBJECT), *filter(None, sys.path)])
        ended = subprocess.run(
            [sys.executable, *command.removeprefix("$ python ").split()],
            cwd=folder,
            # The plugin is an entry point where the package is installed.
            env=dict(os.environ, PYTHONPATH=path, PYTEST_PLUGINS="zeroproof_subject.pytest_plugin"),
            capture_output=True,
            text=True,
            check=False,
        )
        printed = [line.strip("= ") for line in ended.stdout.splitlines()]
        for line in expected:
            self.assertTrue(any(it.startswith(line) for it in printed), f"{line}\n{ended.stdout}")

    def test_its_engine_fails_and_is_mended_as_it_says(self):
        found = blocks(PAGE.read_text())
        engine = next(text for language, text in found if language == "python")
        fails, holds = (text for _, text in found if text.startswith("$ python -m pytest"))
        bug = "        self.zero_grad()  # the last window's\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "my_engine.py"
            path.write_text(engine)
            self.follow(folder, fails)
            self.assertEqual(engine.count(bug), 1)
            path.write_text(engine.replace(bug, ""))
            self.follow(folder, holds)


if __name__ == "__main__":
    unittest.main()
