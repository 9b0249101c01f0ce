"""README and the tutorials, followed: followed_test.py ZEROPROOF.

$ZP_TORCH_PYTHON or python3 runs what needs PyTorch; without it those commands are skipped, and the
test says how many.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import followed

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BINARY = ""
PAGES = ("README.md", "docs/tutorial/record_and_diagnose.md",
         "docs/tutorial/smallest_failing_order.md", "docs/how-to/resume_at_another_world_size.md")
EXAMPLES = ("resume_on_ranks",)  # built beside zeroproof; a page may run them
# Commands that another test runs: which, and words of it.
ELSEWHERE = {
    "./zp verify": ("tests/install/bare_debian.sh", "for command in verify test"),
    "./zp test": ("tests/install/bare_debian.sh", "for command in verify test"),
    "./zp wheel": ("tests/nightly/87-wheel.sh", 'zp" wheel'),
    "pip install out/wheel/": ("tests/wheel/environments.sh", 'install --quiet'),
    "python -m pytest --zeroproof-engine my_engine:make":
        ("subject/tests/with_torch/test_property_tests_page.py", '"$ python -m pytest"'),
}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def python_with_torch():
    """(path, modules): the first Python that has PyTorch, else python3 without modules."""
    for python in filter(None, (os.environ.get("ZP_TORCH_PYTHON"), shutil.which("python3"))):
        found = {module for module in ("torch", "deepspeed")
                 if subprocess.run([python, "-c", f"import {module}"], capture_output=True,
                                   env={**os.environ, "DS_ACCELERATOR": "cpu"}).returncode == 0}
        if "torch" in found:
            return python, found
    return shutil.which("python3"), set()


def follow(path):
    """A Follower that has run the page."""
    python, modules = python_with_torch()
    with tempfile.TemporaryDirectory() as folder:
        programs = os.path.join(folder, ".programs")
        os.mkdir(programs)
        os.symlink(os.path.join(ROOT, "tests"), os.path.join(folder, "tests"))
        os.symlink(BINARY, os.path.join(programs, "zeroproof"))
        for name in EXAMPLES:
            os.symlink(os.path.join(os.path.dirname(BINARY), name), os.path.join(programs, name))
        for name, arguments in (("python", ""), ("python3", ""),
                                ("torchrun", "-m torch.distributed.run ")):
            with open(os.path.join(programs, name), "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec "{python}" {arguments}"$@"\n')
            os.chmod(file.name, 0o755)
        packages = [os.path.join(ROOT, "recorder"), os.path.join(ROOT, "subject")]
        environment = {**os.environ, "PATH": programs + os.pathsep + os.environ["PATH"],
                       "PYTHONPATH": os.pathsep.join([*packages, os.environ.get("PYTHONPATH", "")]),
                       "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "DS_ACCELERATOR": "cpu"}
        follower = followed.Follower(folder, environment, modules, ELSEWHERE)
        follower.save_files(read(PAGES[1]))  # README's train.py stands there
        follower.follow(read(path))
        return follower


class Rules(unittest.TestCase):
    def test_lines_are_looked_for_in_their_order(self):
        printed = "one\ntwo and more\nthree\n"
        for expected, missing in ((["one", "three"], None), (["…", "two …"], None),
                                  (["three", "one"], "one"), (["two"], "two")):
            self.assertEqual(missing, followed.missing_line(expected, printed))

    def test_a_command_without_its_module_is_skipped_with_what_reads_its_files(self):
        follower = followed.Follower("/", dict(os.environ), set(), {"./zp": None})
        follower.follow("```console\n$ torchrun train.py --out trace\n$ cat trace/x\n$ ./zp test\n"
                        "$ echo yes\nno\n```\n")
        self.assertEqual(2, len(follower.skipped))
        self.assertEqual(["echo yes"], follower.ran)
        self.assertEqual(1, len(follower.findings))

    def test_commands_of_other_tests_are_run_there(self):
        text = "".join(read(page) for page in PAGES)
        for command, (path, words) in ELSEWHERE.items():
            self.assertIn(f"$ {command}", text)
            self.assertIn(words, read(path), path)


class Pages(unittest.TestCase):
    def test_print_what_they_show(self):
        for page in PAGES:
            with self.subTest(page=page):
                follower = follow(page)
                print(f"{page}: {len(follower.ran)} commands run, {len(follower.skipped)} skipped")
                self.assertTrue(follower.ran)
                self.assertEqual([], follower.findings, "\n" + "\n".join(follower.findings))


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
