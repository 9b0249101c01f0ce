"""Everything that was replaced comes back."""

import unittest

from zeroproof_recorder.patches import PatchBook


class Base:
    inherited = "of the base"


class Owner(Base):
    own = "own"


class PatchBookTest(unittest.TestCase):
    def test_attributes_come_back_in_reverse_order(self):
        before, patches = dict(vars(Owner)), PatchBook()
        for value in ("first", "second"):
            patches.set(Owner, "own", value)
            patches.set(Owner, "inherited", value)
            patches.set(Owner, "new", value)
        self.assertEqual((Owner.own, Owner.inherited, Owner.new), ("second",) * 3)
        patches.undo()
        self.assertEqual(dict(vars(Owner)), before)
        self.assertEqual(Owner.inherited, "of the base")

    def test_static_methods_stay_static(self):
        class Function:
            @staticmethod
            def forward(x):
                return x

        patches = PatchBook()
        patches.set(Function, "forward", staticmethod(lambda x: -x))
        self.assertEqual(Function.forward(1), -1)
        patches.undo()
        self.assertEqual(Function().forward(1), 1)

    def test_hooks_keep_their_places(self):
        table, items, patches = {"a": 1, "b": 2, "c": 3}, [1, 2, 3], PatchBook()
        patches.put(table, "b", 20)
        patches.swap(items, 2, 20)
        self.assertEqual((list(table.values()), items), ([1, 20, 3], [1, 20, 3]))
        patches.undo()
        self.assertEqual((list(table.values()), items), ([1, 2, 3], [1, 2, 3]))

    def test_a_hook_that_its_owner_removed_stays_removed(self):
        table, items, patches = {"a": 1}, [1], PatchBook()
        patches.put(table, "a", 10)
        patches.swap(items, 1, 10)
        table.clear()
        items.clear()
        patches.undo()
        self.assertEqual((table, items), ({}, []))

    def test_one_failure_does_not_keep_the_others(self):
        patches, undone = PatchBook(), []
        patches.then(lambda: undone.append("first"))
        patches.then(lambda: 1 / 0)
        patches.undo()
        self.assertEqual(undone, ["first"])


if __name__ == "__main__":
    unittest.main()
