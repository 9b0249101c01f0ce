"""The data of programs."""

import unittest

from zeroproof_subject.contributions import MOST, Contributions, first_weights


class ContributionsTest(unittest.TestCase):
    def test_numbers_depend_on_all_that_they_are_of(self):
        base = Contributions(seed=1, engine="a", forward=0, rank=0)
        others = [
            Contributions(2, "a", 0, 0),
            Contributions(1, "b", 0, 0),
            Contributions(1, "a", 1, 0),
            Contributions(1, "a", 0, 1),
        ]
        numbers = base.numbers("l0", 8)
        for other in others:
            self.assertNotEqual(other.numbers("l0", 8), numbers)
        self.assertNotEqual(base.numbers("l1", 8), numbers)
        self.assertEqual(base.numbers("l0", 8), numbers)

    def test_numbers_are_small_and_whole(self):
        numbers = Contributions(0, "a", 0, 0).numbers("l0", 200)
        self.assertEqual(set(numbers), {float(it) for it in range(1, MOST["fp32"] + 1)})
        self.assertEqual(set(Contributions(0, "a", 0, 0, most=3).numbers("l0", 99)), {1.0, 2.0, 3.0})
        self.assertTrue(all(abs(8 * it).is_integer() for it in first_weights("w", 20)))


if __name__ == "__main__":
    unittest.main()
