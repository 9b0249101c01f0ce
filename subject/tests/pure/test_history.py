"""What a program did before a place."""

import unittest

from documents import STEP, backward, document, forward
from zeroproof_subject.history import History
from zeroproof_subject.program import parse

ZERO_GRAD = {"zero_grad": {"engine": "a"}}
KEPT = backward("g", retain_graph=True)
REENTRANT = [{"name": "ck", "checkpoint": {"body": []}}]


def block(kind, *body):
    return {"block": {"kind": kind, "engine": "a", "body": list(body)}}


# A body, the place, what was before it, and a feature that is there or, with "no ", is not.
CASES = [
    ([forward("g"), backward("g"), STEP], "body/2/step", "backward", "no kept graph"),
    ([forward("g"), KEPT, backward("g"), STEP], "body/3/step", "backward", "kept graph"),
    ([forward("g"), forward("h"), backward("h")], "body/2/backward", "nothing", "two open forwards"),
    ([forward("g"), backward("g"), forward("h")], "body/2/forward", "backward", "no two open forwards"),
    ([forward("g"), backward("g"), ZERO_GRAD, STEP], "body/3/step", "zero_grad", "zero_grad after a backward"),
    (
        [block("no_sync", forward("g"), backward("g")), STEP],
        "body/1/step",
        "no_sync backward",
        "last backward in no_sync",
    ),
    (
        [block("no_sync", forward("g")), backward("g"), STEP],
        "body/2/step",
        "backward",
        "forward in no_sync, backward outside",
    ),
    ([forward("g"), KEPT, backward("g"), STEP, STEP], "body/4/step", "nothing", "no kept graph"),
    ([forward("g"), KEPT, backward("g"), STEP, STEP], "body/4/step", "nothing", "ever kept graph"),
    ([forward("g"), STEP], "body/1/step", "nothing", "micro-batch without a backward"),
    ([forward("g"), backward("g"), STEP], "end", "backward", "reentrant checkpoint"),
]


class HistoryTest(unittest.TestCase):
    def test_features(self):
        for body, at, before, feature in CASES:
            with self.subTest(at=at, feature=feature):
                history = History(parse(document(modules=REENTRANT, body=body)), at, "a")
                self.assertEqual(history.before, before)
                name = feature.removeprefix("no ")
                self.assertEqual(name in history.features, name == feature)

    def test_windows_end_where_micro_batches_are_counted(self):
        config = {"gradient_accumulation_steps": 2}
        body = [forward("g"), KEPT, STEP, backward("g"), STEP, STEP]
        program = parse(document(config=config, body=body))
        self.assertIn("kept graph", History(program, "body/4/step", "a").features)
        self.assertNotIn("kept graph", History(program, "body/5/step", "a").features)


if __name__ == "__main__":
    unittest.main()
