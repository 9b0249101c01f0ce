"""pytest --zeroproof-engine, with a script in zeroproof's place."""

import importlib.util
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]

PYTEST = ("-p", "zeroproof_subject.pytest_plugin", "-p", "no:cacheprovider")
PYTEST += ("-rA", "--junitxml", "j.xml")
KNOWN = {"name": "H4", "verdict": "defect", "issue": "https://example.org/7992", "text": ""}


def finding(signature, known=None):
    difference = {"rank": 1, "at": "/2/step", "what": "gradients", "text": "w is [1], not [2]"}
    verdict = {"signature": signature, "difference": difference}
    return {
        "engine": "mine:make",
        "settings": ["stage=2"],
        "versions": {"torch": "2.15.0"},
        "verdict": {**verdict, "known": known} if known else verdict,
        "same_runs": 3,
        "runs": 3,
        "is_flaky": False,
        "text": "model\n    a.step()\n",
        "reproduce": "hunt --replay it.json",
    }


def document(*findings, problem=""):
    return {
        "engine": "mine:make",
        "versions": "torch 2.15.0",
        "cases": 9,
        "statuses": {"equal": 8, "differs": 1},
        "findings": list(findings),
        "problem": problem,
    }


@unittest.skipUnless(importlib.util.find_spec("pytest"), "pytest is not installed")
class PluginTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "test_own.py").write_text("def test_own():\n    pass\n")

    def run_pytest(self, code, answer, *words, path="/usr/bin:/bin"):
        """What pytest printed, its exit code, and its JUnit cases by name."""
        binary = self.folder / "zeroproof"
        said = self.folder / "answer.json"
        said.write_text(json.dumps(answer))
        binary.write_text(
            f'#!/bin/sh\necho "$@" >{self.folder}/words\ncat {said}\necho why >&2\nexit {code}\n'
        )
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        modules = os.pathsep.join([str(PACKAGE), *filter(None, sys.path)])
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *PYTEST, *words],
            cwd=self.folder,
            env=dict(os.environ, PYTHONPATH=modules, ZP_ZEROPROOF=str(binary), PATH=path),
            capture_output=True,
            text=True,
            check=False,
        )
        cases = {}
        for case in ET.parse(self.folder / "j.xml").getroot().iter("testcase"):
            cases[case.get("name")] = [child.tag for child in case]
        return ended.stdout, ended.returncode, cases

    def test_does_nothing_without_an_engine(self):
        _, code, cases = self.run_pytest(1, {})
        self.assertEqual((code, list(cases)), (0, ["test_own"]))

    def test_a_finding_is_a_test_that_fails_with_its_program(self):
        answer = document(finding("gradients at step"), finding("known one", KNOWN))
        text, code, cases = self.run_pytest(1, answer, "--zeroproof-engine", "mine:make")
        self.assertEqual(code, 1)
        self.assertIn("1 failed, 2 passed, 1 xfailed", text)
        self.assertIn("FAILED zeroproof/mine:make::gradients at step", text)
        self.assertIn("collected 2 items", text)
        self.assertIn("[100%]", text)
        self.assertNotRegex(text, r"\[[2-9]\d\d%\]")
        for part in ("rank 1 at /2/step: w is [1], not [2]", "    a.step()", "9 programs: 8 equal"):
            self.assertIn(part, text)
        self.assertIn("reproduce: zeroproof hunt --replay it.json", text)
        self.assertEqual(cases["gradients at step"], ["failure"])
        self.assertEqual(cases["known one"], ["skipped"])

    def test_a_known_finding_fails_where_that_is_wanted(self):
        words = ("--zeroproof-engine", "mine:make", "--zeroproof-known", "fail")
        text, code, _ = self.run_pytest(1, document(finding("known one", KNOWN)), *words)
        self.assertEqual(code, 1)
        self.assertIn("1 failed, 2 passed", text)

    def test_options_reach_the_hunt(self):
        words = ["--zeroproof-engine=mine:make", "--zeroproof-set=a=1", "--zeroproof-set=b=2"]
        words += ["--zeroproof-seed=7", "--zeroproof-stage=2", "--zeroproof-budget=5x"]
        _, code, _ = self.run_pytest(0, document(), *words)
        self.assertEqual(code, 0)
        line = (self.folder / "words").read_text()
        self.assertIn(f"--python {sys.executable} --engine mine:make --stage 2 --budget 5x", line)
        self.assertIn("--seed 7 --set a=1 --set b=2", line)

    def test_the_python_of_the_environment_has_no_path(self):
        folder = Path(sys.executable).parent
        if folder == Path("/usr/bin") or not (folder / "python3").exists():
            self.skipTest("this Python is not python3 of an environment of its own")
        path = f"{folder}:/usr/bin:/bin"
        self.run_pytest(0, document(), "--zeroproof-engine=mine:make", path=path)
        self.assertIn("--python python3 --engine", (self.folder / "words").read_text())

    def test_a_hunt_that_fails_is_no_hunt_that_holds(self):
        engine = ("--zeroproof-engine", "mine:make")
        self.assertIn("1 skipped", self.run_pytest(77, {}, *engine)[0])
        text, code, _ = self.run_pytest(6, {}, *engine)
        self.assertEqual(code, 1)
        self.assertIn("zeroproof hunt: exit code 6\nwhy", text)
        text, code, _ = self.run_pytest(0, document(problem="it died"), *engine)
        self.assertEqual(code, 1)
        self.assertIn("zeroproof hunt: it died", text)


if __name__ == "__main__":
    unittest.main()
