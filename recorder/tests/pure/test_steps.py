"""Step selection."""

import unittest

from zeroproof_recorder.errors import RecorderError
from zeroproof_recorder.steps import StepSelection

# What is given, the steps below 12 that it holds, whether it is over at step 12.
CASES = [
    (None, range(12), False),
    ("10:12", [10, 11], True),
    ("10:", [10, 11], False),
    (":3", [0, 1, 2], True),
    ("4", [4], True),
    ("0:9:4", [0, 4, 8], True),
    ("1, 3:5", [1, 3, 4], True),
    (range(10, 12), [10, 11], True),
    (range(0, 100, 5), [0, 5, 10], False),
    (7, [7], True),
    ([2, 9, 2], [2, 9], True),
    ([], [], True),
]
WRONG = ["", "a", "3:2", "3:3", "1:2:0", "-1", "1,,2", -1, range(5, 5), ["x"], 1.5, "1:2:3:4"]


class StepSelectionTest(unittest.TestCase):
    def test_words_and_ranges_are_those_of_python(self):
        for given, held, is_over in CASES:
            with self.subTest(given=given):
                steps = StepSelection.of(given)
                self.assertEqual([n for n in range(12) if steps.holds(n)], list(held))
                self.assertEqual(steps.is_over(12), is_over)

    def test_a_selection_reads_its_own_words(self):
        for given, held, _ in CASES:
            if given != []:
                again = StepSelection.of(str(StepSelection.of(given)))
                self.assertEqual([n for n in range(12) if again.holds(n)], list(held))

    def test_what_makes_no_sense_is_refused_with_an_example(self):
        for given in WRONG:
            with self.subTest(given=given), self.assertRaises(RecorderError) as raised:
                StepSelection.of(given)
            self.assertRegex(str(raised.exception), "10:12|10 and 11")


if __name__ == "__main__":
    unittest.main()
