"""docs/spec/zero/errors.md has the misuses of engine/engine_error.cpp, in their order."""

import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
NUMBERS = [f"E{n}" for n in range(1, 27)] + [f"F{n}" for n in range(1, 11)]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


class ErrorsPage(unittest.TestCase):
    def test_has_every_misuse_once_with_its_number(self):
        names = re.search(r"kNames = \{(.*?)\};", read("engine/engine_error.cpp"), re.S).group(1)
        rows = re.findall(r"^\| ([EF]\d+) \| `(\w+)` \|", read("docs/spec/zero/errors.md"), re.M)
        self.assertEqual(list(zip(NUMBERS, re.findall(r'"(\w+)"', names))), rows)


if __name__ == "__main__":
    unittest.main()
