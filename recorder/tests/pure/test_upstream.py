"""Digests of releases of DeepSpeed, and what differs between two."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

RECORDER = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(RECORDER / "upstream"), str(RECORDER / "hazards"), str(RECORDER / "jobs")]

import digest
import suite
from changes import changes, report
from digest import Digest, read_digest
from fake_autograd import FakeAutograd
from tokens import token
from trace_items import collectives, order_items, transitions


def event(kind, **fields):
    """An event with what the readers ask for."""
    return {"rec": "ev", "k": kind, **fields}


class TraceItemsTest(unittest.TestCase):
    def test_a_token_names_what_stays_from_run_to_run(self):
        self.assertEqual(token(event("param.post_acc", param="l1.bias")), "acc:l1.bias")
        self.assertEqual(token(event("gt.end", exc="ValueError")), "gt-:exc")
        self.assertEqual(token(event("coll.issue", op="all_reduce", cseq=7)), "coll:all_reduce")
        self.assertEqual(token(event("cb.queue", label="3:Manager.queue._run")), "cbq:_run")
        self.assertIsNone(token(event("engine.call", method="z12.setup_buckets")))

    def test_a_stretch_that_came_before_is_not_written_again(self):
        backward = [event("gt.begin"), event("param.post_acc", param="p"), event("gt.end")]
        step = [event("opt.step")]
        items = list(order_items("job", [*backward, *step, *backward, *step]))
        self.assertEqual(
            items,
            [
                ("job backward 1", "gt+ acc:p gt-"),
                ("job outside 1", "optstep"),
                ("job backward 2", "= backward 1"),
                ("job outside 2", "= outside 1"),
            ],
        )

    def test_neighbours_that_are_given_back_have_no_order(self):
        given = [event("zparam.partition", params=[name]) for name in "ba"]
        self.assertEqual(list(order_items("j", given)), [("j outside 1", "part:a part:b")])

    def test_a_transition_is_what_a_call_changed(self):
        before = {"backward_active_depth": 0, "backward_seen_this_step": False}
        after = {"backward_active_depth": 1, "backward_seen_this_step": True}
        calls = [
            event("bhs.call", method="enter_backward", state=before),
            event("bhs.return", method="enter_backward", state=after),
        ]
        text = "enter_backward: depth +1, seen becomes True"
        self.assertEqual(list(transitions(calls)), [text])

    def test_equal_collectives_in_a_row_are_counted(self):
        issued = [event("coll.issue", op="all_reduce", bytes=4)] * 2
        issued.append(event("coll.issue", op="broadcast", bytes=8))
        self.assertEqual(collectives(issued), "2 x all_reduce 4 B, broadcast 8 B")


class DigestTest(unittest.TestCase):
    def test_a_digest_reads_back(self):
        one = Digest("DeepSpeed 0.19.8")
        one.add("suite.ending", "job-w1", "exit 1 Error:\n two lines | a bar")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "digest.txt.gz"
            one.write(path)
            self.assertEqual(read_digest(path).items, one.items)

    def test_every_known_release_has_a_readable_digest(self):
        known = digest.known_versions()
        self.assertGreaterEqual(len(known), 3)
        for version in known:
            found = read_digest(digest.path_of(version))
            self.assertIn(f"DeepSpeed {version},", found.header)
            self.assertEqual(found.parts, {"hazards", "manager", "programs", "suite"})

    def test_a_release_is_compared_with_itself_or_the_newest_before_it(self):
        with mock.patch.object(digest, "known_versions", lambda: ["0.18.9", "0.19.5"]):
            found = [digest.version_to_compare(v) for v in ("0.18.3", "0.19.5", "0.19.10")]
        self.assertEqual(found, [None, "0.19.5", "0.19.5"])


class ChangesTest(unittest.TestCase):
    def differ(self, old, new):
        return list(changes(Digest("old", old), Digest("new", new)))

    def test_places_with_one_change_are_one_paragraph(self):
        old = {("suite.order", f"job{n} backward 1"): f"gt+ acc:l{n}.bias gt-" for n in (1, 2)}
        new = {key: text.replace("gt+", "gt+ cbq:x") for key, text in old.items()}
        places = ["job1 backward 1", "job2 backward 1"]
        self.assertEqual(self.differ(old, new), [("suite.order", "gt+ +cbq:x", places)])

    def test_a_parameter_is_told_by_its_last_word(self):
        old = {("suite.order", f"job{n} backward 1"): f"gt+ badd:l{n}.bias gt-" for n in (1, 2)}
        new = {key: text.replace("bias", "weight") for key, text in old.items()}
        places = ["job1 backward 1", "job2 backward 1"]
        change = "gt+ -badd:bias +badd:weight"
        self.assertEqual(self.differ(old, new), [("suite.order", change, places)])

    def test_a_hazard_that_comes_is_told_with_its_word(self):
        key = ("hazards.case", "N1 (stage 1)")
        found = self.differ({key: "absent: 3.0"}, {key: "CONFIRMED: KeyError"})
        self.assertEqual(found[0][1], "absent: 3.0 -> CONFIRMED: KeyError")

    def test_a_job_that_ends_otherwise_is_told_once(self):
        old = {("suite.ending", "job"): "exit 0", ("suite.order", "job r0 backward 1"): "gt+ gt-"}
        new = {("suite.ending", "job"): "exit 1"}
        self.assertEqual(self.differ(old, new), [("suite.ending", "exit 0 -> exit 1", ["job"])])

    def test_a_part_that_one_digest_lacks_is_left_out(self):
        self.assertEqual(self.differ({("suite.ending", "job"): "exit 0"}, {}), [])

    def test_states_are_gained_and_lost(self):
        key = ("manager.state", "callback exit_backward: depth -1")
        other = ("manager.state", "callback exit_backward: depth becomes 0")
        lines = list(report(Digest("o", {key: "yes"}), Digest("n", {other: "yes"})))
        self.assertIn(f"  lost: {key[1]}", lines)
        self.assertIn(f"  gained: {other[1]}", lines)


class SuiteTest(unittest.TestCase):
    def items_of(self, ending):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / suite.ENDINGS).write_text(f"job-w1 | {ending}\n")
            found = Digest("header")
            suite.read(found, Path(folder), "")
        return found.items

    def test_an_assertion_inside_pytorch_and_sigsegv_are_one_ending(self):
        crash = {("suite.ending", "job-w1"): "crash inside PyTorch"}
        self.assertEqual(self.items_of("exit -11"), crash)
        self.assertEqual(self.items_of("exit 1 RuntimeError: INTERNAL ASSERT FAILED at"), crash)
        for ending in ("exit 1 RuntimeError: sizes", "exit -6 / exit 1"):
            self.assertEqual(self.items_of(ending), {("suite.ending", "job-w1"): ending})


class FakeAutogradTest(unittest.TestCase):
    def test_callbacks_run_at_the_end_of_their_own_task(self):
        autograd, ran = FakeAutograd(has_callbacks=True), []
        run = lambda number, callback: callback()
        queue = autograd.torch.autograd.Variable._execution_engine.queue_callback
        with autograd.graph_task(run):
            queue(lambda: ran.append("outer"))
            with autograd.graph_task(run):
                queue(lambda: ran.append("inner"))
                self.assertEqual(autograd.torch._C._current_graph_task_id(), 2)
            self.assertEqual(ran, ["inner"])
        self.assertEqual((ran, autograd.task), (["inner", "outer"], -1))

    def test_a_task_that_raises_drops_its_callbacks(self):
        autograd, ran = FakeAutograd(has_callbacks=True), []
        queue = autograd.torch.autograd.Variable._execution_engine.queue_callback
        with self.assertRaises(ValueError), autograd.graph_task(lambda _, callback: callback()):
            queue(lambda: ran.append(1))
            raise ValueError
        self.assertEqual(ran, [])


if __name__ == "__main__":
    unittest.main()
