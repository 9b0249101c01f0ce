"""What a program did before a place."""

import unittest

from documents import STEP, backward, document, forward
from zeroproof_subject.history import History
from zeroproof_subject.program import parse

ZERO_GRAD = {"zero_grad": {"engine": "a"}}
KEPT = backward("g", retain_graph=True)
BY_HAND = {"backward": {"value": "g", "retain_graph": True}}
BY_HAND_TWICE = "tensor backward after another without a forward"
BY_HAND_AGAIN = "tensor backward of a forward again"
ON_RANK_1 = {"module": "ck", "rank": 1}
SUM = {"sum": {"values": ["g", "h"], "as": "s"}}
LOAD = {"load": {"engine": "a", "tag": "t"}}
TRANSFORM = {"transform": {"engine": "a", "kind": "grad"}}
REENTRANT = [{"name": "ck", "checkpoint": {"body": []}}]


def block(kind, *body):
    return {"block": {"kind": kind, "engine": "a", "body": list(body)}}


# A body, the place, what was before it, and a feature that is there or, with "no ", is not.
CASES = [
    ([forward("g"), backward("g"), STEP], "body/2/step", "backward", "no kept graph"),
    ([forward("g"), KEPT, backward("g"), STEP], "body/3/step", "backward", "kept graph"),
    ([forward("g"), forward("h"), backward("h")], "body/2/backward", "no event", "two open forwards"),
    ([forward("g"), backward("g"), forward("h")], "body/2/forward", "backward", "no two open forwards"),
    ([forward("g"), backward("g"), ZERO_GRAD, STEP], "body/3/step", "zero_grad", "zero_grad after a backward"),
    (
        [block("no_sync", forward("g"), backward("g")), STEP],
        "body/1/step",
        "no_sync backward",
        "last backward in no_sync",
    ),
    (
        [block("no_sync", forward("g"), backward("g")), ZERO_GRAD, STEP],
        "body/2/step",
        "zero_grad",
        "zero_grad after no_sync",
    ),
    (
        [block("no_sync", forward("g"), backward("g")), forward("h"), backward("h"), ZERO_GRAD],
        "body/3/zero_grad",
        "backward",
        "no zero_grad after no_sync",
    ),
    (
        [block("no_sync", forward("g")), backward("g"), STEP],
        "body/2/step",
        "backward",
        "forward in no_sync, backward outside",
    ),
    ([forward("g"), KEPT, backward("g"), STEP, STEP], "body/4/step", "no event", "no kept graph"),
    ([forward("g"), KEPT, backward("g"), STEP, STEP], "body/4/step", "no event", "ever kept graph"),
    ([forward("g"), KEPT, backward("g"), STEP], "body/3/step", "backward", "two backwards before a step"),
    ([forward("g"), KEPT, STEP, STEP], "body/2/step", "backward", "no two backwards before a step"),
    ([forward("g"), STEP], "body/1/step", "no event", "micro-batch without a backward"),
    ([forward("g"), KEPT, block("coalesce"), STEP], "body/3/step", "backward", "coalesce block"),
    ([forward("g"), KEPT, block("no_sync"), STEP], "body/3/step", "backward", "no coalesce block"),
    ([forward("g"), STEP], "body/1/step", "no event", "part of the model"),
    ([forward("g"), KEPT, STEP], "body/2/step", "backward", "no part of the model"),
    ([forward("g", skips=[{"module": "ck"}]), KEPT], "body/1/backward", "no event", "part of the model"),
    ([forward("g"), BY_HAND, BY_HAND], "body/2/backward", "backward", BY_HAND_TWICE),
    ([forward("g"), KEPT, BY_HAND], "body/2/backward", "backward", BY_HAND_TWICE),
    ([forward("g"), KEPT, forward("h"), BY_HAND], "body/3/backward", "backward", BY_HAND_AGAIN),
    ([forward("g"), KEPT, forward("h"), KEPT], "body/3/backward", "backward", "no " + BY_HAND_AGAIN),
    ([forward("g"), BY_HAND, STEP, BY_HAND], "body/3/backward", "no event", BY_HAND_TWICE),
    (
        [forward("g"), BY_HAND, forward("g"), BY_HAND],
        "body/3/backward",
        "backward",
        "no " + BY_HAND_TWICE,
    ),
    ([forward("g"), forward("h"), SUM, backward("s")], "body/3/backward", "no event", "engine backward of a sum"),
    ([forward("g", skips=[ON_RANK_1]), KEPT], "body/1/backward", "no event", "skipped modules on one rank"),
    ([TRANSFORM, STEP], "body/1/step", "no event", "transform"),
    ([forward("g"), KEPT, STEP], "body/2/step", "backward", "no ever earlier window"),
    ([forward("g"), KEPT, STEP, backward("g")], "body/3/backward", "no event", "ever earlier window"),
    ([forward("g"), KEPT, ZERO_GRAD, STEP], "body/3/step", "zero_grad", "ever earlier window"),
    ([forward("g"), ZERO_GRAD, STEP], "body/2/step", "zero_grad", "no ever earlier window"),
    ([LOAD, STEP], "body/1/step", "no event", "ever load"),
    (
        [forward("g"), KEPT, ZERO_GRAD, forward("h"), backward("h"), STEP],
        "body/5/step",
        "backward",
        "no two backwards before a step",
    ),
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

    def test_a_refused_statement_did_nothing(self):
        body = [forward("g"), KEPT, STEP]
        program = parse({**document(body=body), "refusals": {"body/1": "x"}})
        history = History(program, "body/2/step", "a")
        self.assertEqual(history.before, "no event")
        self.assertIn("ever refused statement", history.features)
        self.assertNotIn("kept graph", history.features)

    def test_windows_end_where_micro_batches_are_counted(self):
        config = {"gradient_accumulation_steps": 2}
        body = [forward("g"), KEPT, STEP, backward("g"), STEP, STEP]
        program = parse(document(config=config, body=body))
        self.assertIn("kept graph", History(program, "body/4/step", "a").features)
        self.assertNotIn("kept graph", History(program, "body/5/step", "a").features)

    def test_the_last_backward_of_a_window_is_that_of_its_last_micro_batch(self):
        config = {"gradient_accumulation_steps": 2}
        alone = [block("no_sync", forward("g"), backward("g")), STEP]
        together = [forward("h"), backward("h"), STEP]
        for body, expected in (([*alone, *together], False), ([*together, *alone], True)):
            history = History(parse(document(config=config, body=body)), "body/9", "a")
            self.assertEqual("ever last backward in no_sync" in history.features, expected)


if __name__ == "__main__":
    unittest.main()
