"""The header's policy follows what the installed DeepSpeed does, not its version number."""

import json
import os
import subprocess
import sys
import unittest

import support

# Of docs/reference/policies.md: first and last release, and the policy.
RELEASES = (
    ((0, 18, 3), (0, 18, 4), "deepspeed-0.18.3"),
    ((0, 18, 5), (0, 18, 6), "deepspeed-0.18.5"),
    ((0, 18, 7), (0, 19, 5), "deepspeed-0.18.7"),
    ((0, 19, 6), (0, 19, 8), "deepspeed-0.19.6"),
)

# Each case changes one behaviour, asks, and puts it back.
SCRIPT = """
import json
import sys
import deepspeed
import deepspeed.runtime.base_optimizer as base
import deepspeed.runtime.engine as engines
from zeroproof_recorder.manager_policy import manager_policy

Engine = engines.DeepSpeedEngine
Manager = getattr(base, "BackwardHookStateManager", None)


def skips(engine):
    if not engine._running_engine_backward and engine.optimizer._backward_active_depth > 1:
        return
    engine._backward_epilogue()


def runs(engine):
    engine._backward_epilogue()


def leaves(engine, loss):
    engine._running_engine_backward = True
    engine.optimizer.scale_if_loss(loss)


def takes_back(engine, loss):
    engine._running_engine_backward = True
    try:
        engine.optimizer.scale_if_loss(loss)
    finally:
        engine._running_engine_backward = False


def changed(owner, **methods):
    kept = {name: vars(owner)[name] for name in methods}
    for name, method in methods.items():
        setattr(owner, name, method)
    found = manager_policy()
    for name, method in kept.items():
        setattr(owner, name, method)
    return found


def refuses(*_):
    raise TypeError("called in another way")


found = {"version": deepspeed.__version__, "installed": manager_policy()}
if hasattr(Manager, "should_refresh_expected_hook_count"):
    found["0.18.7"] = changed(Engine, _backward_post_hook=runs, backward=leaves)
    found["0.19.6"] = changed(Engine, _backward_post_hook=skips, backward=takes_back)
    found["neither"] = changed(Engine, _backward_post_hook=skips, backward=leaves)
    found["nor"] = changed(Engine, _backward_post_hook=runs, backward=takes_back)
    found["branch"] = changed(Manager, reset_for_new_step=lambda manager: False)
    found["failing"] = changed(Engine, _backward_post_hook=refuses)
    found["again"] = manager_policy()
print(json.dumps(found))
"""


def expected_of(version):
    """The policy of a release; None for one that is not in the table."""
    numbers = tuple(int(number) for number in version.split("+")[0].split(".")[:3])
    return next((name for first, last, name in RELEASES if first <= numbers <= last), None)


@unittest.skipUnless(support.has("deepspeed"), "DeepSpeed is not installed")
class ManagerPolicyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        env = dict(os.environ, DS_ACCELERATOR="cpu", PYTHONPATH=str(support.RECORDER))
        if "PYTHONPATH" in os.environ:
            env["PYTHONPATH"] += os.pathsep + os.environ["PYTHONPATH"]
        command = [sys.executable, "-c", SCRIPT]
        ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise AssertionError(ended.stderr[-3000:])
        cls.found = json.loads(ended.stdout.splitlines()[-1])

    def test_of_the_installed_release(self):
        expected = expected_of(self.found["version"])
        if expected is None:
            self.skipTest(f"DeepSpeed {self.found['version']} is not in the table")
        self.assertEqual(self.found["installed"], expected)

    def test_follows_what_the_engine_does(self):
        cases = {
            "0.18.7": "deepspeed-0.18.7",
            "0.19.6": "deepspeed-0.19.6",
            "neither": None,
            "nor": None,
            "branch": "deepspeed-pr8245",
            "failing": None,
            "again": self.found["installed"],
        }
        if "again" not in self.found:
            self.skipTest("this DeepSpeed has no manager that counts once a phase")
        for case, policy in cases.items():
            with self.subTest(case):
                self.assertEqual(self.found[case], policy)


if __name__ == "__main__":
    unittest.main()
