"""docs/explanation/life_of_a_gradient.md names functions that exist, in the order of their calls."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gradient_page

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SOURCE = """
void Core::hook(Tensor& grad) const {  // not: bucket.reduce(grad)
  bucket.take(grad);
  if (is_full(grad)) bucket.reduce(grad);
}
struct Bucket {
  void take(Tensor& grad) { values.push_back(grad); }
  void reduce(const Tensor&);
};
void Bucket::reduce(const Tensor& grad) { all_reduce("never(", grad); }
"""
GOOD = """# A page
## Stage 2
### The hook
- `Core::hook` (a.cpp): called by
  the autograd.
- `Bucket::take` (a.cpp): copies.
- `Bucket::reduce` (a.cpp): reduces.
## The end
**3 functions in 1 file**
"""
# What is replaced in the page, by what, and a word of the finding.
BAD = [
    ("`Bucket::take` (a.cpp): copies.", "`Bucket::put` (a.cpp): copies.", "not defined"),
    ("`Bucket::take` (a.cpp)", "`Bucket::take` (b.cpp)", "does not exist"),
    ("- `Bucket::take` (a.cpp): copies.\n- `Bucket::reduce` (a.cpp): reduces.",
     "- `Bucket::reduce` (a.cpp): reduces.\n- `Bucket::take` (a.cpp): copies.", "earlier"),
    ("`Bucket::reduce` (a.cpp): reduces.", "`Bucket::take` (a.cpp): copies.", "twice"),
    ("**3 functions", "**4 functions", "counts"),
]


def findings_of(page, source=SOURCE):
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, os.path.dirname(gradient_page.PAGE)))
        for path, text in ((gradient_page.PAGE, page), ("a.cpp", source)):
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return gradient_page.check(root)


class GradientPage(unittest.TestCase):
    def test_a_true_page_has_no_finding(self):
        self.assertEqual([], findings_of(GOOD))

    def test_a_false_one_has(self):
        for before, after, words in BAD:
            with self.subTest(after=after):
                found = findings_of(GOOD.replace(before, after))
                self.assertTrue(any(words in finding for finding in found), found)

    def test_a_function_that_is_no_longer_called_is_found(self):
        found = findings_of(GOOD, SOURCE.replace("  bucket.take(grad);\n", ""))
        self.assertEqual(["Bucket::take is called by no function that stands before it"], found)

    def test_our_page_is_true(self):
        with open(os.path.join(ROOT, gradient_page.PAGE), encoding="utf-8") as page:
            self.assertGreater(len(gradient_page.items_of(page.read())), 20)
        found = gradient_page.check(ROOT)
        self.assertEqual([], found, "\n" + "\n".join(found))


if __name__ == "__main__":
    unittest.main()
