"""Everything that was replaced comes back."""

import unittest

from zeroproof_recorder.guard import Guard
from zeroproof_recorder.patches import PatchBook


class Base:
    def inherited(self):
        return "of the base"


class Owner(Base):
    def own(self):
        return "own"


class Handle:
    def __init__(self, removed):
        self._removed = removed

    def remove(self):
        self._removed.append(True)


def some_observer(notes=None):
    notes = [] if notes is None else notes
    return Guard(lambda *note: notes.append(note)).observer("some", ["some.*"])


class PatchBookTest(unittest.TestCase):
    def test_attributes_come_back_in_reverse_order(self):
        before, patches, seen = dict(vars(Owner)), PatchBook(), []
        for word in ("first", "second"):
            for name in ("own", "inherited"):
                watch = lambda call, word=word: seen.append(word)  # noqa: E731
                self.assertTrue(patches.observe(Owner, name, some_observer(), watch))
        self.assertEqual((Owner().own(), Owner().inherited()), ("own", "of the base"))
        self.assertEqual(seen, ["second", "first"] * 2)
        patches.undo()
        self.assertEqual(dict(vars(Owner)), before)
        self.assertEqual(Owner().inherited(), "of the base")

    def test_a_missing_function_is_noted_once(self):
        notes, patches = [], PatchBook()
        observer = some_observer(notes)
        for _ in range(2):
            self.assertFalse(patches.observe(Owner, "nowhere", observer))
        self.assertEqual(
            notes, [("some is not observed: Owner has no nowhere", "some", ["some.*"])]
        )

    def test_static_methods_stay_static(self):
        class Function:
            @staticmethod
            def forward(x):
                return x

        patches, seen = PatchBook(), []
        patches.observe(Function, "forward", some_observer(), lambda call: seen.append(call.args))
        self.assertEqual((Function.forward(1), Function().forward(2)), (1, 2))
        patches.undo()
        self.assertEqual((Function().forward(1), seen), (1, [(1,), (2,)]))

    def test_what_somebody_put_above_stays_and_sees_no_observer_any_more(self):
        class Place:
            def method(self):
                return 1

        patches, seen = PatchBook(), []
        patches.observe(Place, "method", some_observer(), seen.append)
        ours = Place.method
        Place.method = lambda place: ours(place) + 1
        patches.undo()
        self.assertEqual((Place().method(), seen), (2, []))

    def test_hooks_keep_their_places(self):
        table, patches, seen = {"a": len, "b": sum, "c": max}, PatchBook(), []
        patches.observe_entry(table, "b", some_observer(), seen.append, seen.append)
        self.assertEqual((list(table), table["b"]([1, 2]), len(seen)), (["a", "b", "c"], 3, 2))
        patches.undo()
        self.assertEqual(list(table.values()), [len, sum, max])

    def test_a_hook_that_its_owner_removed_stays_removed(self):
        table, items, patches = {"a": len}, [Owner().own], PatchBook()
        patches.observe_entry(table, "a", some_observer(), print, print)
        patches.look_up_again(items, items[0])
        table.clear()
        items.clear()
        patches.undo()
        self.assertEqual((table, items), ({}, []))

    def test_registered_hooks_are_removed_and_return_nothing(self):
        patches, removed, hooks = PatchBook(), [], []

        def register(hook):
            hooks.append(hook)
            return Handle(removed)

        patches.hook(register, some_observer(), lambda value: value)
        self.assertIsNone(hooks[0](3))
        patches.undo()
        self.assertEqual(removed, [True])

    def test_one_failure_does_not_keep_the_others(self):
        patches, undone = PatchBook(), []
        patches.then(lambda: undone.append("first"))
        patches.then(lambda: 1 / 0)
        patches.undo()
        self.assertEqual(undone, ["first"])


if __name__ == "__main__":
    unittest.main()
