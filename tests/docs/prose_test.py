"""Pages, help texts and comments keep within prose_budget.json, whose limits may only fall."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import prose

LONG = "The engine keeps " + "one more word and " * 7 + "ends."
# A file, its text, and the kinds that are found.
CASES = [
    ("docs/page.md", "The hook runs after the last gradient.", []),
    ("docs/page.md", "The hook runs behind the last gradient.", ["words"]),
    ("docs/page.md", "A page `behind` a block:\n\n```\nbehind\n```\n", []),
    ("docs/page.md", "What runs is a hook.", ["openings"]),
    ("docs/page.md", "One line ends\nWhat follows is its second half, so Where it stands.", []),
    ("docs/page.md", "| What | stands in a table, behind a bar |", []),
    ("docs/page.md", LONG, []),
    ("docs/how-to/page.md", LONG, ["long"]),
    ("docs/how-to/page.md", "Short. " + LONG + " Short again.", ["long"]),
    ("docs/tutorial/page.md", "- " + "a word " * 10 + "\n- " + "a word " * 10, []),
    ("engine/core.cpp", 'const char* text = "nobody";  // Nobody waits.', ["words", "words"]),
    ("tests/core.cpp", 'const char* text = "nobody";  // Nobody waits.', ["words"]),
    ("engine/core.cpp", 'what = "{} stepped, and none "\n    "of them";', ["words"]),
    ("engine/core.cpp", 'row = {"latitude", order};', []),
    ("props/report/web/a.js", 'const words = "nothing found";  // tells it', ["words", "words"]),
    ("props/mutation/faults/a.faults", "fault A01: a step tells\n    nobody\n@ engine/a.cpp: f\n+  // told\n"
     "\nfault A02: unseen\nreason: none\n    of them is seen\n", ["words", "words", "words"]),
    ("props/cli/verb.cpp", 'const char* text = "nobody waits";', ["words"]),
    ("props/cli/verb.cpp", 'view kFormerVerb = "museum"; view kVerb = "museum";', ["words"]),
    ("recorder/a.py", 'def f():\n    """Tells it."""\n    return "told"  # told', ["words"] * 3),
    ("recorder/tests/a.py", 'def f():\n    """Tells it."""\n    return "told"  # told', ["words"] * 2),
    ("engine/core.cpp", "int behind = 0;", []),
    ("props/scenarios/a.json", '{"description": "nobody waits"}', ["words"]),
    ("tests/data/a.json", '{"description": "nobody waits"}', []),
    ("cmake/a.cmake", "set(nothing 1)  # nothing", ["words"]),
]


class Prose(unittest.TestCase):
    def test_finds_what_style_forbids(self):
        for path, text, kinds in CASES:
            with self.subTest(path=path, text=text):
                self.assertEqual(kinds, [kind for kind, _ in prose.findings_in(path, text)])

    def test_compares_counts_with_limits(self):
        counts = {"docs": {"words": 2, "long": 1}}
        self.assertEqual([], prose.over_budget(counts, {"docs": {"words": 2, "long": 1}}))
        self.assertEqual(1, len(prose.over_budget(counts, {"docs": {"words": 1, "long": 1}})))
        self.assertEqual(2, len(prose.over_budget(counts, {})))

    def test_never_raises_a_limit(self):
        limits = {"docs": {"words": 3}, "engine": {"words": 5}}
        counts = {"docs": {"words": 4}, "engine": {"words": 2}}
        self.assertEqual({"docs": {"words": 3}, "engine": {"words": 2}}, prose.lowered(counts, limits))

    def test_of_the_tree_is_within_its_limits(self):
        parts = {prose.part_of(path) for path in prose.tracked_files()}
        self.assertEqual(set(prose.PARTS), parts - {None})
        counts, _ = prose.count_tree()
        found = prose.over_budget(counts, prose.read_budget())
        self.assertEqual([], found, "\n" + "\n".join(found))


if __name__ == "__main__":
    unittest.main()
