"""Links and paths in pages lead somewhere; each page of docs/ is in its index."""

import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import links

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
# A page in docs/, and a word of the finding; empty: none.
CASES = [
    ("[a](how-to/run.md)", ""),
    ("[a](how-to/run.md#the-first-run)", ""),
    ("[a](#here)\n\n## Here\n", ""),
    ("[a](https://example.org/none)", ""),
    ("`engine/core.h`, core/tensor.h, `engine/NAME.cpp`, engine/co*.h", ""),
    ("```\nengine/none.h [a](none.md)\n```\n", ""),
    ("[a](how-to/none.md)", "does not exist"),
    ("![a](none.png)", "does not exist"),
    ("[a](how-to/run.md#the-second-run)", "no such heading"),
    ("`engine/none.h`", "engine/none.h"),
]


class Links(unittest.TestCase):
    def findings_of(self, page):
        with tempfile.TemporaryDirectory() as root:
            files = {"docs/page.md": page, "docs/how-to/run.md": "# The first run\n",
                     "engine/core.h": "", "include/zeroproof/core/tensor.h": "", "core/x.cpp": ""}
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return links.check(root)

    def test_are_followed(self):
        for page, word in CASES:
            with self.subTest(page=page):
                found = self.findings_of(page)
                self.assertEqual(bool(word), bool(found), found)
                self.assertIn(word, "".join(found))

    def test_of_this_tree_lead_somewhere(self):
        found = links.check(ROOT)
        self.assertEqual([], found, "\n" + "\n".join(found))


class Index(unittest.TestCase):
    def test_has_each_page_once(self):
        index = links.read(ROOT, "docs/README.md")
        listed = [os.path.normpath(os.path.join("docs", target))
                  for target in re.findall(r"^\| \[[^\]]+\]\(([^)#]+\.md)\)", index, re.M)]
        pages = [path for path in links.pages(ROOT) if path.startswith("docs/")]
        rules = [path for path in pages if path.startswith("docs/spec/zero/")]  # listed by zero.md
        self.assertEqual(sorted(set(pages) - set(rules) - {"docs/README.md"}), sorted(listed))


if __name__ == "__main__":
    unittest.main()
