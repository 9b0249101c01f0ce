"""Records as lines."""

import json
import math
import unittest

from zeroproof_recorder.encoder import Encoder, header, plain


def lines(*records, rank=0):
    text = Encoder().lines(records, rank).decode()
    return [json.loads(line) for line in text.splitlines()]


class EncoderTest(unittest.TestCase):
    def test_events_are_numbered_in_the_order_given(self):
        first, note, second = lines(
            (5, 0, "mark", -1, 0, {"label": "a"}),
            {"rec": "note", "text": "b"},
            (6, 1, "opt.zero_grad", 3, 2, None),
            rank=7,
        )
        self.assertEqual(list(first), ["rec", "lc", "t", "r", "th", "k", "gt", "d", "label"])
        self.assertEqual([first["lc"], second["lc"], second["r"]], [1, 2, 7])
        self.assertEqual([second["th"], second["gt"], second["d"]], [1, 3, 2])
        self.assertEqual(note["text"], "b")

    def test_a_graph_task_known_late_is_written_early(self):
        begin, _, end = lines(
            (1, 0, "gt.begin", -1, 0, {"call": 4}),
            (2, 0, "mark", 9, 1, {"label": "in it"}),
            (4, 9),
            (3, 0, "gt.end", -1, 0, {"call": 4, "exc": None}),
        )
        self.assertEqual([begin["gt"], end["gt"]], [9, 9])
        self.assertNotIn("exc", end)

    def test_a_graph_task_stays_known_in_the_next_batch(self):
        encoder = Encoder()
        encoder.lines([(1, 0, "gt.begin", -1, 0, {"call": 0}), (0, 5)], 0)
        end = json.loads(encoder.lines([(2, 0, "gt.end", -1, 0, {"call": 0})], 0))
        self.assertEqual([end["gt"], end["lc"]], [5, 2])

    def test_a_task_of_which_nothing_was_seen_has_no_id(self):
        (begin,) = lines((1, 0, "gt.begin", 3, 1, {"call": 0}))  # 3 is the task around it
        self.assertEqual(begin["gt"], -1)

    def test_only_plain_json_comes_out(self):
        class Word(str):
            pass

        given = {"n": math.nan, "i": [math.inf, -math.inf], 3: Word("w"), "o": object, "b": True}
        told = plain(given)
        self.assertEqual(
            [told["n"], told["i"], told["3"], told["b"]], ["nan", ["inf", "-inf"], "w", True]
        )
        self.assertIs(type(told["3"]), str)
        json.dumps(told, allow_nan=False)

    def test_the_states_of_a_manager_get_their_names(self):
        full = (3, 1, 1, True, False, 1, 4, True, 7)
        new, old = lines(
            (1, 0, "bhs.call", 7, 1, {"method": "m", "state": full}),
            (2, 0, "bhs.return", 7, 1, {"method": "m", "state": full[:3]}),
        )
        self.assertEqual(new["state"]["remaining_grad_acc_hooks"], 3)
        self.assertEqual(new["state"]["post_backward_callback_graph_task_id"], 7)
        self.assertEqual(list(old["state"]), list(new["state"])[:3])

    def test_the_end_counts_what_was_written(self):
        encoder = Encoder()
        encoder.lines(
            [(1, 0, "mark", -1, 0, {"label": "a"}), {"rec": "note", "text": ""}, (0, 1)], 0
        )
        self.assertEqual(json.loads(encoder.end_line()), {"rec": "end", "events": 1, "records": 2})

    def test_a_header_leaves_out_what_is_unknown(self):
        told = header(1, 2, {"unit": "ns"}, {"program": "p", "stage": None})
        self.assertEqual([told["rank"], told["world"], told["program"]], [1, 2, "p"])
        self.assertNotIn("stage", told)


if __name__ == "__main__":
    unittest.main()
