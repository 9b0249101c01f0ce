"""The wheel of packaging/ has what it should; a program that prints its arguments stands in.

Exit code 77 where pip or venv is missing.
"""

import base64
import configparser
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "packaging"))
import wheel_backend

STAND_IN = "/bin/echo"  # needs the C library alone


def tracked(folder):
    """Files of git below the folder, or all that are there where git is not."""
    done = subprocess.run(["git", "-C", ROOT, "ls-files", folder], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else wheel_backend.files_below(folder, ".py")


class WheelFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.environ["ZP_WHEEL_BINARY"] = STAND_IN
        cls.path = os.path.join(cls.folder, wheel_backend.build_wheel(cls.folder))
        cls.wheel = zipfile.ZipFile(cls.path)
        cls.info = f"zeroproof-{wheel_backend.version()}.dist-info"

    @classmethod
    def tearDownClass(cls):
        cls.wheel.close()
        shutil.rmtree(cls.folder)

    def text(self, name):
        return self.wheel.read(name).decode()

    def test_is_named_by_version_and_platform(self):
        self.assertRegex(os.path.basename(self.path),
                         r"^zeroproof-\d+\.\d+\.\d+-py3-none-manylinux_2_\d+_x86_64\.whl$")
        self.assertIn(f"\nVersion: {wheel_backend.version()}\n", self.text(f"{self.info}/METADATA"))

    def test_has_every_module_of_both_packages(self):
        names = set(self.wheel.namelist())
        for folder in ("recorder/zeroproof_recorder", "subject/zeroproof_subject"):
            modules = [path for path in tracked(folder) if path.endswith((".py", ".json"))]
            self.assertGreater(len(modules), 10)
            missing = {path.split("/", 1)[1] for path in modules} - names
            self.assertEqual(set(), missing)

    def test_has_the_recordings_that_the_command_knows(self):
        recordings = [path for path in tracked("tests/traces") if path.endswith((".gz", ".json"))]
        wanted = {f"{wheel_backend.DATA}/{path.removeprefix('tests/')}" for path in recordings}
        self.assertGreater(len(wanted), 500)
        self.assertEqual(set(), wanted - set(self.wheel.namelist()))

    def test_records_every_file_with_its_hash(self):
        rows = dict(row.split(",", 1) for row in self.text(f"{self.info}/RECORD").split())
        self.assertEqual(set(self.wheel.namelist()), set(rows))
        for name in self.wheel.namelist():
            digest = hashlib.sha256(self.wheel.read(name)).digest()
            encoded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if not name.endswith("/RECORD"):
                self.assertTrue(rows[name].startswith(f"sha256={encoded},"), name)

    def test_names_entry_points_that_exist(self):
        parser = configparser.ConfigParser()
        parser.read_string(self.text(f"{self.info}/entry_points.txt"))
        for section in parser.values():
            for target in section.values():
                module, _, function = target.partition(":")
                source = self.text(module.replace(".", "/") + ".py")
                name = function or "pytest_addoption"
                self.assertRegex(source, rf"(?m)^def {name}\(|^from .* import {name}$", target)

    def test_is_the_same_twice(self):
        with tempfile.TemporaryDirectory() as again:
            name = wheel_backend.build_wheel(again)
            with open(os.path.join(again, name), "rb") as one, open(self.path, "rb") as other:
                self.assertEqual(one.read(), other.read())

    def test_refuses_a_program_that_needs_other_libraries(self):
        with self.assertRaisesRegex(wheel_backend.WheelError, "needs lib"):
            wheel_backend.platform_tag(shutil.which("bash"))

    def test_says_what_to_do_where_no_program_was_built(self):
        os.environ["ZP_WHEEL_BINARY"] = "/nowhere/zeroproof"
        self.addCleanup(os.environ.__setitem__, "ZP_WHEEL_BINARY", STAND_IN)
        with self.assertRaisesRegex(wheel_backend.WheelError, "./zp wheel"):
            wheel_backend.build_wheel(self.folder)

    def test_runs_the_program_from_a_bare_environment(self):
        home = os.path.join(self.folder, "environment")
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        python = os.path.join(home, "bin", "python")
        install = [python, "-m", "pip", "install", "--quiet", "--no-index", self.path]
        subprocess.run(install, check=True)
        for command in ([os.path.join(home, "bin", "zeroproof")], [python, "-m", "zeroproof"]):
            done = subprocess.run([*command, "replay", "a file"], check=True, capture_output=True)
            self.assertEqual(b"replay a file\n", done.stdout)
        for module in ("zeroproof_recorder", "zeroproof_subject"):
            done = subprocess.run([python, "-m", module, "--help"], check=True, capture_output=True,
                                  cwd="/")
            self.assertTrue(done.stdout.startswith(b"usage: "), done.stdout)


if __name__ == "__main__":
    if any(importlib.util.find_spec(module) is None for module in ("pip", "venv", "ensurepip")):
        print("skipped: needs pip and venv")
        sys.exit(77)
    unittest.main()
