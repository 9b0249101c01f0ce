"""Every document that a file cites is in the repository, and has the section that is cited."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import citations

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGES = {
    "docs/spec/zero.md": "# ZeRO\n\n[gradients](zero/gradients.md)\n",
    "docs/spec/zero/gradients.md": "## 2.17 Reduction\n\n| E7 | `step_inside_no_sync` |\n",
    "docs/FORMAT.md": "## 5. Events\n",
}
FOREIGN = "zero_" + "semantics"  # assembled, so that this file passes its own rule
# A line that breaks one rule, and a word of the finding.
BAD = [
    ("engine/a.h", f"// The reduction of one bucket ({FOREIGN} 2.17).", "not in the repository"),
    ("engine/a.h", "// ../shared/" + "spec/product.md", "not in the repository"),
    ("engine/a.h", "// The reduction (docs/spec/zero.md 2.18).", "2.18"),
    ("engine/a.h", "// The reduction (docs/spec/zero.md 2.17, 9).", "section 9"),
    ("engine/a.h", "// The reduction (docs/spec/zero.md\n// 3.1).", "3.1"),
    ("engine/a.h", "// A misuse, docs/spec/zero.md E8.", "E8"),
    ("engine/a.h", "// Events (docs/FORMAT.md section 6).", "section 6"),
    ("engine/a.h", "// The rules: docs/RULES.md.", "does not exist"),
    ("recorder/a.py", "# The rules: docs/RULES.md.", "does not exist"),
    ("zp.sh", "echo see docs/RULES.md", "does not exist"),
    ("docs/PAGE.md", "[a page](spec/none.md)", "does not exist"),
]
GOOD = [
    ("engine/a.h", "// The reduction of one bucket (docs/spec/zero.md 2.17)."),
    ("engine/a.h", "// A misuse, docs/spec/zero.md E7; events of docs/FORMAT.md section 5."),
    ("engine/a.cpp", "const auto& rows = bug_" + "catalogue();"),
    ("docs/PAGE.md", "[a page](spec/zero.md#top) and https://example.org/none.md"),
]


def findings_of(path, line):
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**PAGES, path: line + "\n"}.items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        return citations.check_tree(root)


class Citations(unittest.TestCase):
    def test_a_bad_citation_is_found_once(self):
        for path, line, words in BAD:
            with self.subTest(line=line):
                found = findings_of(path, line)
                self.assertEqual(1, len(found), found)
                self.assertIn(words, found[0])
                self.assertTrue(found[0].startswith(path + ":1: "), found[0])

    def test_a_good_one_is_not(self):
        for path, line in GOOD:
            with self.subTest(line=line):
                self.assertEqual([], findings_of(path, line))

    def test_the_tree_cites_what_it_has(self):
        found = citations.check_tree(ROOT)
        self.assertEqual([], found, "\n" + "\n".join(found))


if __name__ == "__main__":
    unittest.main()
