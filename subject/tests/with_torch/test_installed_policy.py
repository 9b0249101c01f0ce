"""The hook-state manager of the installed DeepSpeed in every order, beside the port of it."""

import importlib.util
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

SUBJECT = Path(__file__).resolve().parents[2]
ZEROPROOF = os.environ.get("ZP_ZEROPROOF", "")
COMMAND = f"{sys.executable} -m zeroproof_subject.policy deepspeed"


def table(*words):
    """Scenario -> what some order falsifies."""
    command = [ZEROPROOF, "explore", "all", "--json", *words]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, DS_ACCELERATOR="cpu"),
    )
    if ended.returncode not in (0, 1):
        raise AssertionError(ended.stderr[-2000:])
    return {
        one["scenario"]: [finding["number"] for finding in one["properties"]["falsified"]]
        for one in json.loads(ended.stdout)["runs"]
    }


@unittest.skipUnless(importlib.util.find_spec("deepspeed"), "DeepSpeed is not installed")
@unittest.skipUnless(ZEROPROOF, "ZP_ZEROPROOF names no zeroproof")
class InstalledPolicyTest(unittest.TestCase):
    def test_falsifies_what_the_port_of_its_release_does(self):
        import deepspeed

        for mode in ("graph_task_callback", "count_fallback"):
            with self.subTest(mode):
                port = table("--mode", mode, "--policy", f"deepspeed-{deepspeed.__version__}")
                self.assertEqual(table("--mode", mode, "--policy-command", COMMAND), port)
                self.assertGreater(sum(map(len, port.values())), 10)


if __name__ == "__main__":
    unittest.main()
