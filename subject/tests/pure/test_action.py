"""The steps of subject/action/action.yml, run as GitHub runs them, with a script as zeroproof."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
ACTION = PACKAGE / "action" / "action.yml"

# pip is named and not run; the plugin is then found without an installation.
PYTHON = f"""#!/bin/sh
if [ "$2" = pip ]; then echo "$@" >>pip.log; exit 0; fi
exec {sys.executable} "$@"
"""


def steps(text):
    """(env, script) of each step; the file has no other form of YAML."""
    for block in re.split(r"\n    - name: ", text)[1:]:
        head, _, script = block.partition("      run: |\n")
        env = dict(re.findall(r"^        ([A-Z]+): (.*)$", head, re.MULTILINE))
        yield env, "".join(line[8:] + "\n" for line in script.splitlines())


def inputs(text):
    """The default of each input; None where one must be given."""
    part = text.partition("inputs:\n")[2].partition("runs:\n")[0]
    found = {}
    for block in re.split(r"\n?  (?=[a-z]+:\n)", part)[1:]:
        default = re.search(r'default: "?([^"\n]*)', block)
        found[block.partition(":")[0]] = default.group(1) if default else None
    return found


@unittest.skipUnless(importlib.util.find_spec("pytest"), "pytest is not installed")
class ActionTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.write("python", PYTHON)
        self.write("test_own.py", "def test_own():\n    assert False\n")

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run_steps(self, code, answer, **given):
        """The exit code of the first step that fails, or 0."""
        said = self.write("answer.json", json.dumps(answer))
        script = f"#!/bin/sh\necho $@ >{self.folder}/words\ncat {said}\nexit {code}\n"
        text = ACTION.read_text()
        values = {**inputs(text), **given}
        environment = {
            **os.environ,
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(PACKAGE), *filter(None, sys.path)]),
            "PYTEST_PLUGINS": "zeroproof_subject.pytest_plugin",  # an entry point where installed
            "ZP_ZEROPROOF": str(self.write("zeroproof", script)),
            "GITHUB_ACTION_PATH": str(ACTION.parent),
        }
        for env, script in steps(text):
            env = {
                k: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: values[m[1]], v)
                for k, v in env.items()
            }
            self.assertNotIn("${{", script)
            command = ["bash", "-eo", "pipefail", "-c", script]
            ended = subprocess.run(command, cwd=self.folder, env=environment | env, check=False)
            if ended.returncode:
                return ended.returncode
        return 0

    def test_installs_this_package_and_runs_the_programs_alone(self):
        answer = {
            "engine": "e",
            "versions": "",
            "cases": 7,
            "statuses": {},
            "findings": [],
            "problem": "",
        }
        self.assertEqual(self.run_steps(0, answer, engine="mine:make", settings="a=1 b=x"), 0)
        words = (self.folder / "words").read_text()
        for part in (
            "--engine mine:make",
            "--budget 50x",
            "--seed 0",
            "--corpus zeroproof-findings",
            "--set a=1 --set b=x",
        ):
            self.assertIn(part, words)
        self.assertIn('tests="1"', (self.folder / "zeroproof.xml").read_text())
        pip = (self.folder / "pip.log").read_text().split()
        self.assertIn(PACKAGE, [Path(word).resolve() for word in pip if "/" in word])

    def test_needs_an_engine_and_fails_where_the_hunt_does(self):
        self.assertIsNone(inputs(ACTION.read_text())["engine"])
        self.assertEqual(self.run_steps(5, {}, engine="mine:make"), 1)

    def test_builds_zeroproof_where_none_is_given(self):
        text = ACTION.read_text()
        (_, script), *_ = steps(text)
        tree = self.folder / "tree"
        (tree / "subject" / "action").mkdir(parents=True)
        zp = tree / "zp"
        zp.write_text(f"#!/bin/sh\necho $@ >{self.folder}/zp.log\n")
        zp.chmod(0o755)
        environment = {key: value for key, value in os.environ.items() if key != "ZP_ZEROPROOF"}
        environment["GITHUB_ACTION_PATH"] = str(tree / "subject" / "action")
        environment["GITHUB_ENV"] = str(self.folder / "env")
        subprocess.run(["bash", "-eo", "pipefail", "-c", script], env=environment, check=True)
        self.assertEqual((self.folder / "zp.log").read_text(), "build release\n")
        expected = f"ZP_ZEROPROOF={tree.resolve()}/build/release/bin/zeroproof\n"
        self.assertEqual((self.folder / "env").read_text(), expected)


if __name__ == "__main__":
    unittest.main()
