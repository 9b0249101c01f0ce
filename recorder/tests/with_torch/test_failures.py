"""The recorder reports what ends a job, and the user sees what Python shows without it."""

import os
import subprocess
import sys
import threading
import unittest
from unittest import mock

import support

import zeroproof_recorder

# How a script fails, its exit code, and the forms of recording it is tried under.
ENDINGS = {
    "exception": ("raise ValueError('two' + chr(10) + 'lines')", 1, ("run", "module")),
    "exit": ("sys.exit(3)", 3, ("run",)),
    "interrupt": ("raise KeyboardInterrupt", -2, ("run",)),
    "in a hook": (
        "import torch; x = torch.ones(2, requires_grad=True); x.register_hook(lambda g: 1 / 0); "
        "x.sum().backward()",
        1,
        ("run", "block", "call"),
    ),
    "in a step": (
        "import torch; torch.optim.SGD([torch.ones(1)], lr=0.1).step(lambda: 1 / 0)",
        1,
        ("run",),
    ),
}
TYPES = {
    "exception": "ValueError",
    "exit": "SystemExit",
    "interrupt": "KeyboardInterrupt",
    "in a hook": "ZeroDivisionError",
    "in a step": "ZeroDivisionError",
}
SCRIPT = """
import sys

def inner():
    {failure}

def outer():
    try:
        {{}}["missing"]
    except KeyError:
        inner()

{call}
"""
IN_BLOCK = """
import contextlib
import os
recorded = contextlib.nullcontext()
if os.environ.get("TRACE"):
    import zeroproof_recorder
    recorded = zeroproof_recorder.record(out=os.environ["TRACE"], quiet=True)
with recorded:
    outer()
"""
IN_CALLBACK = """
import os
if os.environ.get("TRACE"):
    import zeroproof_recorder
    recorded = zeroproof_recorder.record(out=os.environ["TRACE"], quiet=True)
    recorded.__enter__()
outer()
"""


class FailureTest(support.RecordingTest):
    def exceptions(self, body, expected):
        with self.assertRaises(expected):
            with zeroproof_recorder.record(out=self.folder, quiet=True):
                body()
        return self.told()

    def told(self):
        found = [e for e in support.events(self.trace()) if e["k"] == "exc"]
        self.trace().unlink()
        return [(e["type"], e["message"], e.get("uncaught")) for e in found]

    def test_what_leaves_the_block_is_uncaught(self):
        cases = [
            (ValueError("first line\nsecond"), [("ValueError", "first line", True)]),
            (SystemExit(3), [("SystemExit", "3", True)]),
            (SystemExit("no data"), [("SystemExit", "no data", True)]),
            (SystemExit(0), []),
            (SystemExit(), []),
        ]
        for error, expected in cases:
            with self.subTest(error=error):
                body = mock.Mock(side_effect=error)
                self.assertEqual(self.exceptions(body, type(error)), expected)

    def test_a_block_that_is_forgotten_has_no_exception(self):
        entered = zeroproof_recorder.record(out=self.folder, quiet=True)
        entered.__enter__()
        del entered
        self.assertEqual(self.told(), [])

    def test_what_ends_a_thread_does_not_end_the_job(self):
        with zeroproof_recorder.record(out=self.folder, quiet=True), mock.patch("sys.stderr"):
            thread = threading.Thread(target=lambda: 1 / 0)
            thread.start()
            thread.join()
        self.assertEqual(self.told(), [("ZeroDivisionError", "division by zero", None)])

    def run_python(self, *arguments, **variables):
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(support.RECORDER), "."]))
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**env, **variables},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    def test_the_user_sees_what_python_shows(self):
        run = ("-m", "zeroproof_recorder", "run", "--quiet", "--out", "traces")
        traced = {"TRACE": "traces"}
        # What the script ends with, the command without and with the recorder, variables.
        forms = {
            "run": ("outer()", ("script.py",), (*run, "script.py"), {}),
            "module": ("outer()", ("-m", "script"), (*run, "-m", "script"), {}),
            "block": (IN_BLOCK, ("script.py",), ("script.py",), traced),
            "call": (IN_CALLBACK, ("script.py",), ("script.py",), traced),
        }
        for name, (failure, code, chosen) in ENDINGS.items():
            for form in chosen:
                call, plain, recorded, variables = forms[form]
                with self.subTest(ending=name, form=form):
                    text = SCRIPT.format(failure=failure, call=call)
                    (self.folder / "script.py").write_text(text)
                    expected = self.run_python(*plain)
                    self.assertEqual(expected[0], code, expected)
                    self.assertEqual(self.run_python(*recorded, **variables), expected)
                    (found,) = self.told_in("traces")
                    self.assertTrue(found["uncaught"])
                    self.assertEqual(found["type"], TYPES[name])

    def told_in(self, folder):
        (path,) = (self.folder / folder).glob("*.gz")
        found = [e for e in support.events(path) if e["k"] == "exc" and "key" not in e]
        path.unlink()
        return found

    def test_a_script_that_is_no_python_is_refused_in_pythons_words(self):
        (self.folder / "script.py").write_text("def f(:\n    pass\n")
        run = ("-m", "zeroproof_recorder", "run", "--quiet", "--out", "traces")
        self.assertEqual(self.run_python(*run, "script.py"), self.run_python("script.py"))


if __name__ == "__main__":
    unittest.main()
